// Mapping another process's file safely.
#include "engine/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/fd.hpp"
#include "engine/regions.hpp"

namespace baton::engine {

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, length_bytes_);
}

Result<Mapping> Mapping::map_file(int descriptor, std::uint64_t offset_bytes,
                                  std::uint64_t length_bytes) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return system_error("fstat of a shared file", errno);
  AddressRange range;
  const bool fits = make_range(offset_bytes, length_bytes, range) &&
                    range.end <= static_cast<std::uint64_t>(status.st_size);
  if (!fits) return Error{Errc::malformed, "the shared file is shorter than the region"};
  // Without this seal the owner could truncate the file, and our next store would be a SIGBUS.
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Error{Errc::unsupported, "the shared file is not sealed against shrinking"};
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  Mapping mapping;
  mapping.skip_bytes_ = static_cast<std::size_t>(offset_bytes % page);
  mapping.length_bytes_ = static_cast<std::size_t>(length_bytes) + mapping.skip_bytes_;
  void* base = ::mmap(nullptr, mapping.length_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED,
                      descriptor, static_cast<off_t>(offset_bytes - mapping.skip_bytes_));
  if (base == MAP_FAILED) return system_error("mmap of a shared file", errno);
  // A child of fork() must not inherit the power to write here.
  ::madvise(base, mapping.length_bytes_, MADV_DONTFORK);
  mapping.base_ = static_cast<std::byte*>(base);
  return mapping;
}

}  // namespace baton::engine
