// The `baton` command: one program, one file per sub-command.
int main() { return 2; }
