// SPDX-License-Identifier: Apache-2.0
// Templates within templates, for a compiler to take apart.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

template <int kDepth>
struct Nested {
  std::map<std::string, std::vector<Nested<kDepth - 1>>> inner;
  void count() {
    for (auto& [name, all] : inner)
      for (auto& one : all) one.count();
  }
};
template <>
struct Nested<0> {
  int number = 0;
  void count() { ++number; }
};

void use() {
  Nested<12> nested;
  nested.count();
  std::vector<std::string> words{"b", "a"};
  std::sort(words.begin(), words.end());
}
