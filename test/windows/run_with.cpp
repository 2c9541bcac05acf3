// SPDX-License-Identifier: Apache-2.0
//
// run_with DLL PROGRAM [ARGUMENTS...]: runs a program that knows nothing of the DLL with it loaded, and ends
// as the program does. A thread that loads the DLL runs in the new process before the program's first one
// does. Called by program_test.cpp, and by whoever wants to try a program; 125 if that cannot be done.
#include <windows.h>

#include <cstdio>
#include <string>

namespace {

int failed(const char* what) {
  std::fprintf(stderr, "run_with: %s: error %lu\n", what, GetLastError());
  return 125;
}

// As the C runtime takes a command line apart, for arguments without quotation marks in them.
std::string command_line(char** arguments) {
  std::string line;
  for (; *arguments != nullptr; ++arguments) line += "\"" + std::string(*arguments) + "\" ";
  return line;
}

// By a thread there that runs LoadLibraryA: kernel32.dll lies at one address in all processes. What it
// answers is half of the module's address.
bool load_in(HANDLE process, const std::string& dll) {
  const std::size_t bytes = dll.size() + 1;
  void* const name = VirtualAllocEx(process, nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  auto* const load = reinterpret_cast<LPTHREAD_START_ROUTINE>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleA("kernel32.dll"), "LoadLibraryA")));
  if (name == nullptr || WriteProcessMemory(process, name, dll.c_str(), bytes, nullptr) == 0) return false;
  const HANDLE thread = CreateRemoteThread(process, nullptr, 0, load, name, 0, nullptr);
  DWORD loaded = 0;
  if (thread == nullptr || WaitForSingleObject(thread, INFINITE) != WAIT_OBJECT_0) return false;
  return GetExitCodeThread(thread, &loaded) != 0 && loaded != 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("usage: run_with DLL PROGRAM [ARGUMENTS...]\n", stderr), 125;
  std::string line = command_line(argv + 2);
  char dll[MAX_PATH + 1];
  if (GetFullPathNameA(argv[1], sizeof dll, dll, nullptr) == 0) return failed(argv[1]);
  STARTUPINFOA start = {};
  start.cb = sizeof start;
  PROCESS_INFORMATION child = {};
  if (CreateProcessA(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED, nullptr, nullptr, &start,
                     &child) == 0)
    return failed(argv[2]);
  if (!load_in(child.hProcess, dll)) {
    const int code = failed(argv[1]);
    TerminateProcess(child.hProcess, 125);
    return code;
  }
  ResumeThread(child.hThread);
  WaitForSingleObject(child.hProcess, INFINITE);
  DWORD code = 125;
  GetExitCodeProcess(child.hProcess, &code);
  return static_cast<int>(code);
}
