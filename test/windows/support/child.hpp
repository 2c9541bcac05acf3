// SPDX-License-Identifier: Apache-2.0
//
// Runs a program and returns how it ended and what it wrote, on Windows. A child that hangs is ended. What
// abort() makes the exit code is told as SIGABRT, an access that Windows refused as SIGSEGV.
#pragma once

#include <windows.h>

#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/variable.hpp"

namespace hz_test {

struct ChildResult {
  DWORD pid = 0;
  int exit_code = -1;  // -1 if a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
  std::string calls;  // of stderr: none yet, for a report on Windows has no calls
};

using Setting = std::pair<std::string, std::string>;

// Without the carriage returns of text files.
inline void ReadAll(HANDLE pipe, std::string& text) {
  char buffer[4096];
  for (DWORD got = 0; ReadFile(pipe, buffer, sizeof buffer, &got, nullptr) != 0 && got != 0;)
    for (DWORD i = 0; i < got; ++i)
      if (buffer[i] != '\r') text += buffer[i];
  CloseHandle(pipe);
}

struct Pipe {
  HANDLE read = nullptr, write = nullptr;
  Pipe() {
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, nullptr, TRUE};
    CreatePipe(&read, &write, &inherited, 0);
    SetHandleInformation(read, HANDLE_FLAG_INHERIT, 0);
  }
};

// There is no shell that could do anything before.
inline std::vector<std::string> AfterShell(const std::string&, const std::string& program,
                                           const std::string& argument) {
  return {program, argument};
}
inline void KeepPreloadFromShell(std::vector<Setting>&) {}

// The name that Linux has for the program that asks is understood.
inline std::string CommandLine(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    char self[MAX_PATH + 1];
    GetModuleFileNameA(nullptr, self, MAX_PATH);
    line += "\"" + (argument == "/proc/self/exe" ? self : argument) + "\" ";
  }
  return line;
}

// `settings` are added to the environment; an empty value removes the variable.
inline ChildResult RunChild(const std::vector<std::string>& arguments, const std::vector<Setting>& settings,
                            unsigned timeout_seconds = 120) {
  ChildResult result;
  Pipe out, err;
  STARTUPINFOA start = {};
  start.cb = sizeof start;
  start.dwFlags = STARTF_USESTDHANDLES;
  start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
  start.hStdOutput = out.write;
  start.hStdError = err.write;
  PROCESS_INFORMATION process = {};
  std::string line = CommandLine(arguments);
  for (const Setting& setting : settings)
    SetVariable(setting.first.c_str(), setting.second.empty() ? nullptr : setting.second.c_str());
  const bool started = CreateProcessA(nullptr, line.data(), nullptr, nullptr, TRUE, 0, nullptr, nullptr,
                                      &start, &process) != 0;
  for (const Setting& setting : settings) SetVariable(setting.first.c_str(), nullptr);
  CloseHandle(out.write);
  CloseHandle(err.write);
  std::thread other([&] { ReadAll(err.read, result.err); });
  std::thread guard([&] {
    if (started && WaitForSingleObject(process.hProcess, 1000 * timeout_seconds) != WAIT_OBJECT_0)
      TerminateProcess(process.hProcess, 127);
  });
  ReadAll(out.read, result.out);
  other.join();
  guard.join();
  if (!started) return result;
  constexpr DWORD kAborted = 3;
  DWORD code = 0;
  GetExitCodeProcess(process.hProcess, &code);
  result.pid = process.dwProcessId;
  if (code == kAborted) result.signal = SIGABRT;
  if (code == STATUS_ACCESS_VIOLATION) result.signal = SIGSEGV;
  if (result.signal == 0) result.exit_code = static_cast<int>(code);
  CloseHandle(process.hProcess);
  CloseHandle(process.hThread);
  return result;
}

}  // namespace hz_test
