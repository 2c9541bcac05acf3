// SPDX-License-Identifier: Apache-2.0
//
// Runs a program and returns how it ended and what it wrote. Called by tests whose subject dies, or needs an
// environment of its own. A child that hangs is ended by SIGALRM.
#pragma once

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "support/calls.hpp"
#include "support/sanitizers.hpp"

namespace hz_test {

struct ChildResult {
  pid_t pid = 0;
  int exit_code = -1;  // -1 if a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
  std::string calls;  // of stderr: the lines that tell by which calls the process came to a report
};

using Setting = std::pair<std::string, std::string>;

inline void ReadBoth(int out_fd, int err_fd, ChildResult& result) {
  pollfd fds[2] = {{out_fd, POLLIN, 0}, {err_fd, POLLIN, 0}};
  std::string* texts[2] = {&result.out, &result.err};
  for (int open_fds = 2; open_fds > 0;) {
    if (poll(fds, 2, -1) < 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(got));
      } else {
        fds[i].fd = -1;
        --open_fds;
      }
    }
  }
}

// QEMU tells of a signal that ends its program.
inline void DropLinesOfEmulator(std::string& text) {
  for (std::size_t at = 0; (at = text.find("qemu: ", at)) != std::string::npos;)
    if (at == 0 || text[at - 1] == '\n') {
      text.erase(at, text.find('\n', at) + 1 - at);
    } else {
      ++at;
    }
}

// Command and settings of a shell that does `first` and then becomes the program. What is preloaded is for
// the program alone: the shell may have another C library.
inline std::vector<std::string> AfterShell(const std::string& first, const std::string& program,
                                           const std::string& argument) {
  return {"sh", "-c", first + " && LD_PRELOAD=$HZ_TEST_PRELOADED exec \"$0\" \"$1\"", program, argument};
}
inline void KeepPreloadFromShell(std::vector<Setting>& settings) {
  const char* preloaded = std::getenv("LD_PRELOAD");
  settings.emplace_back("HZ_TEST_PRELOADED", preloaded == nullptr ? "" : preloaded);
  settings.emplace_back("LD_PRELOAD", "");
}

// `settings` are added to the environment; an empty value removes the variable.
inline ChildResult RunChild(const std::vector<std::string>& arguments, const std::vector<Setting>& settings,
                            unsigned timeout_seconds = 120) {
  int out_pipe[2];
  int err_pipe[2];
  ChildResult result;
  if (pipe(out_pipe) != 0 || pipe(err_pipe) != 0) return result;
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(out_pipe[1], 1);
    dup2(err_pipe[1], 2);
    for (int fd : {out_pipe[0], out_pipe[1], err_pipe[0], err_pipe[1]}) close(fd);
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(timeout_seconds);
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    for (const Setting& setting : settings) {
      if (setting.second.empty()) {
        unsetenv(setting.first.c_str());
      } else {
        setenv(setting.first.c_str(), setting.second.c_str(), 1);
      }
    }
    execvp(argv[0], argv.data());
    _exit(127);
  }
  result.pid = pid;
  close(out_pipe[1]);
  close(err_pipe[1]);
  ReadBoth(out_pipe[0], err_pipe[0], result);
  close(out_pipe[0]);
  close(err_pipe[0]);
  if (kEmulated) DropLinesOfEmulator(result.err);
  result.calls = TakeCalls(result.err);
  int status = 0;
  waitpid(pid, &status, 0);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace hz_test
