// Scenario runner: executes a story written as text and prints what the nodes did. In the style of
// etcd's datadriven tests: blocks of commands, then "----", then the expected output.
//
//   prefill P [rank=0] [bootstrap=300s]         decode D [tp=1] [tp_rank=0] [page_size=16]
//   [dtype=T]
//                                                 [states=0] [required=1] [waiting=300s]
//                                                 [release=30s] [resolve=15s] [retry=200ms]
//   open P 7                                    open D 7 boot:80 [dp=0]
//   init P 7 pages=2 aux=4                      publish D 7 [pages=1,2] [aux=3] [prefix=0]
//   [state=5;] send P 7 [pages=0,1] [state=5;-] [last=yes] abort | clear | observe | status NODE 7
//   write-done P 1 ok|failed|unsettled|settled ["reason"] [broken=yes] [bytes=64]
//   topology D boot:80 [tp=1] [cp=1] [dp=1] [pp=1] [page_size=16] [dtype=T] [follow=yes]
//   topology D boot:80 error not_found "text"   route D boot:80 P:1 | error not_found "text"
//   deliver A->B [count] | deliver all          drop A->B | duplicate A->B | send-failed A->B "why"
//   disconnected D P
//   inject A->B registration|metadata|status|abort|abort_ack [field=value ..]
//   advance 1s                                  handshake P D 7 [pages=] [init=] [aux=] ..: silent
//
// A room is the newest life that the node's application opened; "7#1" names one.
#pragma once

#include <string>

namespace baton::test {

// The same story with the actual output in place of the expected one. Broken invariants are lines
// of the output; commands that make no sense are "error: ..." lines.
std::string run_scenario(const std::string& story);

}  // namespace baton::test
