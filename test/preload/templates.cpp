// SPDX-License-Identifier: Apache-2.0
//
// Work for a C++ compiler: many instantiations, regular expressions, threads. Compiled and run by g++.sh.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

template <std::size_t N>
struct Fib {
  static constexpr std::uint64_t value = Fib<N - 1>::value + Fib<N - 2>::value;
};
template <>
struct Fib<1> {
  static constexpr std::uint64_t value = 1;
};
template <>
struct Fib<0> {
  static constexpr std::uint64_t value = 0;
};

template <class... Ts>
struct Types {
  static constexpr std::size_t size = sizeof...(Ts);
};
template <std::size_t N, class... Ts>
struct Grow : Grow<N - 1, std::array<char, N>, Ts...> {};
template <class... Ts>
struct Grow<0, Ts...> {
  using type = Types<Ts...>;
};

template <int N>
std::uint64_t Work(std::uint64_t seed) {
  std::map<std::string, std::vector<std::uint64_t>> table;
  for (int i = 0; i < 200 + N; ++i) {
    seed = seed * 6364136223846793005u + static_cast<std::uint64_t>(N);
    table["key" + std::to_string(seed % 97)].push_back(seed);
  }
  std::uint64_t sum = 0;
  for (auto& entry : table) {
    std::sort(entry.second.begin(), entry.second.end());
    sum = std::accumulate(entry.second.begin(), entry.second.end(), sum ^ entry.second.size());
  }
  return sum;
}

template <int... Ns>
std::uint64_t WorkAll(std::integer_sequence<int, Ns...>) {
  std::uint64_t sum = 0;
  (static_cast<void>(sum ^= Work<Ns>(sum + Ns)), ...);
  return sum;
}

using Value = std::variant<int, std::string, std::shared_ptr<std::set<int>>, std::tuple<double, std::string>>;

int main() {
  std::cout << Fib<90>::value << ' ' << Grow<120>::type::size << '\n';
  std::cout << WorkAll(std::make_integer_sequence<int, 60>()) << '\n';

  std::vector<std::uint64_t> results(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&results, i] {
      for (int round = 0; round < 50; ++round)
        results[i] += Work<7>(i * 1000 + static_cast<std::uint64_t>(round));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::uint64_t result : results) std::cout << result << '\n';

  std::ostringstream text;
  for (int i = 0; i < 3000; ++i) text << "word" << i % 113 << (i % 10 == 0 ? "\n" : " ");
  const std::string words = text.str();
  const std::regex pattern("word(\\d)\\1?");
  std::cout << std::distance(std::sregex_iterator(words.begin(), words.end(), pattern),
                             std::sregex_iterator())
            << '\n';

  std::unordered_map<int, Value> values;
  for (int i = 0; i < 20000; ++i) {
    switch (i % 4) {
      case 0: values[i % 701] = i; break;
      case 1: values[i % 701] = std::string(static_cast<std::size_t>(i % 50), 'v'); break;
      case 2: values[i % 701] = std::make_shared<std::set<int>>(std::set<int>{i, i / 2, i / 3}); break;
      default: values[i % 701] = std::make_tuple(i * 0.5, std::to_string(i)); break;
    }
  }
  std::size_t kinds[4] = {};
  for (const auto& value : values) ++kinds[value.second.index()];
  std::cout << kinds[0] << ' ' << kinds[1] << ' ' << kinds[2] << ' ' << kinds[3] << '\n';
}
