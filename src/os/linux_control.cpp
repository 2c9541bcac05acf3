// SPDX-License-Identifier: Apache-2.0
//
// Linux: a socket that others on this machine ask us by, and open files that are one thread's alone. See
// os.hpp for the contract; called by the thread of control (heap/settings/control.cpp).
//
// The socket's name is in no folder: "hakozuna.PID.RANDOM", in the network namespace. Processes of several
// namespaces may have one number, and another user may guess it beforehand: the random part tells them apart,
// and readers find it in /proc/net/unix. The kernel says which user connects (SO_PEERCRED). Served are root,
// and the user that this process has as its real, effective and saved one: a server of root's that works as
// a user for a while is still root's. User 65534, which stands for any user outside of a user namespace, is
// refused.
#include <errno.h>
#include <string.h>
#include <sys/un.h>

#include "base/bytes.hpp"
#include "os/calls.hpp"
#include "os/linux_file.hpp"
#include "os/message.hpp"
#include "os/os.hpp"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

namespace hz::os {
namespace {

constexpr int kWaiting = 16;  // clients
constexpr uid_t kAnybody = 65534;
constinit long listening = -1;  // of the one thread

// The error stream's number may be 2, or what keep_error_stream() made of it: nothing of this thread may have
// either, or a message would go there.
long out_of_the_way(long file) {
  constexpr int kOutOfTheWay = 200;
  const long moved = file < 0 ? -1 : call::duplicate(file, kOutOfTheWay);
  if (moved < 0) return file;
  call::close(file);
  return moved;
}

bool is_ready(long file, short event, std::uint64_t until) {
  for (;;) {
    const std::uint64_t now = microseconds() / 1000;
    const std::uint64_t left = until > now ? until - now : 0;
    timespec timeout = {static_cast<time_t>(left / 1000), static_cast<long>(left % 1000) * 1000000};
    pollfd one = {static_cast<int>(file), event, 0};
    const long ready = call::ppoll(&one, &timeout);
    if (ready != -EINTR) return ready > 0;
  }
}

// Where the system refuses to wait for a client, or to take one.
void rest(std::uint64_t until) {
  static constexpr std::uint32_t kWord = 0;
  const std::uint64_t now = microseconds() / 1000;
  if (now < until) wait_at_most(&kWord, kWord, static_cast<unsigned>(until - now));
}

bool is_stranger(long client) {
  ucred who = {};
  socklen_t bytes = sizeof who;
  if (call::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return true;
  uid_t real = kAnybody, effective = kAnybody, saved = kAnybody;
  if (call::make(SYS_getresuid, &real, &effective, &saved) != 0) return true;
  const bool is_ours = who.uid == real && who.uid == effective && who.uid == saved && who.uid != kAnybody;
  return who.uid != 0 && !is_ours;
}

// Binds to a name that no other socket has. 0; else an error of the system's, below 0.
long bind_control(long file) {
  constexpr int kAttempts = 8;
  long error = 0;
  for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    std::uint64_t random = 0;
    constexpr unsigned kNotWaiting = 1;  // GRND_NONBLOCK
    // Not random_word(): the name is public, and that word is a secret.
    if (call::make(SYS_getrandom, &random, sizeof random, kNotWaiting) < 0) random = microseconds();
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    BasicMessage<48> text;
    text.text("hakozuna.").decimal(process_id()).text(".").decimal(random + attempt);
    copy_bytes(name.sun_path + 1, text.data(), text.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    error = call::bind(file, reinterpret_cast<const sockaddr*>(&name), bytes);
    if (error != -EADDRINUSE) break;
  }
  return error;
}

// Until the end of the line, which is cut off.
Request read_line(long client, char* line, std::uint64_t until) {
  Request request = {.client = Client::kSilent, .line = line};
  while (is_ready(client, POLLIN, until)) {
    const long n =
        call::recv(client, line + request.length, Request::kMostLine - request.length, MSG_DONTWAIT);
    if (n == -EINTR || n == -EAGAIN) continue;
    if (n <= 0) return request;
    const auto* const end =
        static_cast<const char*>(memchr(line + request.length, '\n', static_cast<std::size_t>(n)));
    request.length += static_cast<std::size_t>(n);
    if (end != nullptr) {
      request.length = static_cast<std::size_t>(end - line);
      return request.client = Client::kAsks, request;
    }
    if (request.length == Request::kMostLine) return request.client = Client::kTooLong, request;
  }
  return request;
}

void write_all(long client, const char* text, std::size_t length, std::uint64_t until) {
  while (length != 0) {
    const long n = call::send(client, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n == -EAGAIN && is_ready(client, POLLOUT, until)) continue;
    if (n == -EINTR) continue;
    if (n <= 0) return;
    text += n;
    length -= static_cast<std::size_t>(n);
  }
}

}  // namespace

// Since Linux 5.9. Copies only descriptors that it closes at once, so no process waits for the end of a pipe
// that only this thread has.
int leave_files() { return static_cast<int>(-call::make(SYS_close_range, 0, ~0U, CLOSE_RANGE_UNSHARE)); }

int open_control() {
  const long file = out_of_the_way(call::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (file < 0) return static_cast<int>(-file);
  long error = bind_control(file);
  if (error == 0) error = call::listen(file, kWaiting);
  if (error != 0) {
    call::close(file);
    return static_cast<int>(-error);
  }
  listening = file;
  return 0;
}

void serve_control(unsigned milliseconds, std::size_t (*answer)(const Request&, char*, std::size_t)) {
  const std::uint64_t then = microseconds() / 1000 + milliseconds;
  const bool ready = is_ready(listening, POLLIN, then);
  const long client = ready ? out_of_the_way(call::accept4(listening, SOCK_CLOEXEC)) : -1;
  if (client < 0) return rest(then);
  const std::uint64_t until = microseconds() / 1000 + Request::kPatience;
  char line[Request::kMostLine], text[kMostAnswer];
  const Request request = is_stranger(client) ? Request{.client = Client::kStranger, .line = line}
                                              : read_line(client, line, until);
  write_all(client, text, answer(request, text, sizeof text), until + Request::kPatience);
  call::shutdown(client, SHUT_RDWR);
  call::close(client);
}

// The first thread stays, and counts, until all others have ended.
bool are_last_threads(unsigned ours) {
  char buffer[256];
  FileBytes file("/proc/self/stat", buffer);
  // PID (NAME) STATE ...; the name may have brackets. The 18th word from the state on is the number of
  // threads.
  char state = 0;
  unsigned words = 0, threads = 0;
  for (int c = file.next(), before = 0; c >= 0 && words <= 18; before = c, c = file.next()) {
    if (c == ')') {
      state = 0;
      words = threads = 0;
    } else if (c == ' ') {
      ++words;
    } else if (before == ' ' && words == 1) {
      state = static_cast<char>(c);
    } else if (words == 18 && c >= '0' && c <= '9') {
      threads = threads * 10 + static_cast<unsigned>(c - '0');
    }
  }
  return state == 'Z' && threads == ours + 1;
}

long reopened(long number) {
  BasicMessage<40> path;
  path.text("/proc/self/fd/").decimal(static_cast<unsigned>(number)).part("", 1);
  return out_of_the_way(call::open(path.data(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY));
}

}  // namespace hz::os
