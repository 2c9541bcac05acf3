// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target once on every file of some folders, without libFuzzer: what CI does with the corpora,
// and how an input that was found is tried again, `fuzz_TARGET FILE`. What the target makes the library say
// goes nowhere.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "input.hpp"

int main(int count, char** arguments) {
  namespace files = std::filesystem;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  unsigned inputs = 0;
  const auto run = [&inputs](const files::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++inputs;
  };
  for (int i = 1; i < count; ++i) {
    if (!files::is_directory(arguments[i])) {
      run(arguments[i]);
      continue;
    }
    for (const auto& entry : files::directory_iterator(arguments[i])) run(entry.path());
  }
  std::printf("%u inputs\n", inputs);
  return inputs == 0 ? 2 : 0;
}
