// SharedMemory: one memfd, sealed so that nobody can shrink it under a peer's mapping.
#include "baton/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "engine/fd.hpp"

namespace baton {

Result<SharedMemory> SharedMemory::create(std::size_t length_bytes) {
  if (length_bytes == 0) {
    return Error{Errc::invalid_argument, "shared memory needs a length above 0"};
  }
  engine::Fd descriptor(::memfd_create("baton", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!descriptor) return engine::system_error("memfd_create", errno);
  if (::ftruncate(descriptor.get(), static_cast<off_t>(length_bytes)) != 0) {
    return engine::system_error("ftruncate of shared memory to " + std::to_string(length_bytes),
                                errno);
  }
  // A peer maps this file. If the file could shrink, the peer's next store there would kill it with
  // SIGBUS; the local engine maps only files that carry this seal.
  if (::fcntl(descriptor.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return engine::system_error("sealing shared memory", errno);
  }
  void* data =
      ::mmap(nullptr, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.get(), 0);
  if (data == MAP_FAILED) {
    return engine::system_error("mmap of shared memory of " + std::to_string(length_bytes), errno);
  }
  return SharedMemory(static_cast<std::byte*>(data), length_bytes, descriptor.release());
}

SharedMemory::SharedMemory(std::byte* data, std::size_t length_bytes, int descriptor)
    : data_(data), length_bytes_(length_bytes), descriptor_(descriptor) {}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      length_bytes_(std::exchange(other.length_bytes_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(length_bytes_, other.length_bytes_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, length_bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

Region SharedMemory::region() const {
  Region region;
  region.address = reinterpret_cast<std::uint64_t>(data_);
  region.length_bytes = length_bytes_;
  region.shared_fd = descriptor_;
  return region;
}

}  // namespace baton
