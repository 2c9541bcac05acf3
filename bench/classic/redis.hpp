// SPDX-License-Identifier: Apache-2.0
//
// The workload of the redis_synthetic lanes: what the commands of a key-value server ask of its allocator,
// without the server. Every thread has a store of its own: `keys` values, all set in the beginning, and one
// list. An iteration is one command, drawn by the percentages of the lane:
//   SET     a new value is formatted, put under a random key, and the old one freed
//   GET     the value of a random key is copied into a reply, which is then freed
//   LPUSH   a new value is formatted and put in front of the list, in a node of its own; a list of `list`
//           values is deleted before
//   LPOP    the first value of the list is copied into a reply, which is then freed, and so are value and
//           node; a list found empty is first filled with `list` / 2 values
// Run by the classic family, and by a unit test with an allocator that keeps books.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lane/caller.hpp"
#include "lane/lane.hpp"
#include "support/rng.hpp"

namespace hz::bench {

struct RedisShape {
  explicit RedisShape(const Run& run)
      : min_size(run.number("min_size")),
        max_size(run.number("max_size")),
        keys(run.number("keys")),
        list(run.number("list")),
        set_below(run.number("set_percent")),
        get_below(set_below + run.number("get_percent")),
        lpush_below(get_below + run.number("lpush_percent")),
        iterations(run.iterations()) {
    if (lpush_below + run.number("lpop_percent") != 100)
      fail("the shares of the commands are not 100 percent");
  }

  std::uint32_t min_size;  // of a value; at least 16
  std::uint32_t max_size;
  std::uint32_t keys;
  std::uint32_t list;
  std::uint32_t set_below;  // a draw of 0..99 below it is a SET
  std::uint32_t get_below;
  std::uint32_t lpush_below;
  std::uint64_t iterations;
};

// A value, in a block of its own.
struct RedisText {
  char* text;
  std::uint32_t size;
};

struct RedisNode {
  RedisNode* next;
  RedisText value;
};

template <class Allocator>
class RedisStore {
 public:
  // `keys` has shape.keys entries, any content.
  RedisStore(const RedisShape& shape, Xorshift64Star random, RedisText* keys)
      : shape_(shape), random_(random), keys_(keys) {}

  Tally run() {
    for (std::uint32_t i = 0; i < shape_.keys; ++i) keys_[i] = make_value();
    for (std::uint64_t i = 0; i < shape_.iterations; ++i) {
      const std::uint32_t command = random_.below(100);
      if (command < shape_.set_below) {
        set();
      } else if (command < shape_.get_below) {
        reply(keys_[random_.below(shape_.keys)]);
      } else if (command < shape_.lpush_below) {
        if (length_ == shape_.list) delete_list();
        push();
      } else {
        pop();
      }
    }
    for (std::uint32_t i = 0; i < shape_.keys; ++i) caller_.release(keys_[i].text);
    delete_list();
    return caller_.tally();
  }

 private:
  // A number, and filling behind it.
  RedisText make_value() {
    const std::uint32_t size = shape_.min_size + random_.below(shape_.max_size - shape_.min_size + 1);
    char* text = static_cast<char*>(caller_.allocate(size));
    char* filling = std::to_chars(text, text + size, static_cast<std::uint32_t>(random_.next())).ptr;
    std::memset(filling, 'x', static_cast<std::size_t>(text + size - filling));
    return {text, size};
  }

  void set() {
    RedisText& key = keys_[random_.below(shape_.keys)];
    const RedisText value = make_value();
    caller_.release(key.text);
    key = value;
  }

  void reply(const RedisText& value) {
    void* copy = caller_.allocate(value.size);
    std::memcpy(copy, value.text, value.size);
    caller_.release(copy);
  }

  void push() {
    const RedisText value = make_value();
    auto* node = static_cast<RedisNode*>(caller_.allocate(sizeof(RedisNode)));
    *node = {first_, value};
    first_ = node;
    ++length_;
  }

  void pop() {
    if (length_ == 0) {
      while (length_ < shape_.list / 2) push();
    }
    reply(first_->value);
    delete_first();
  }

  void delete_first() {
    RedisNode* node = first_;
    first_ = node->next;
    --length_;
    caller_.release(node->value.text);
    caller_.release(node);
  }

  void delete_list() {
    while (length_ != 0) delete_first();
  }

  RedisShape shape_;
  Xorshift64Star random_;
  RedisText* keys_;
  RedisNode* first_ = nullptr;
  std::uint32_t length_ = 0;
  Caller<Allocator> caller_;
};

}  // namespace hz::bench
