// SPDX-License-Identifier: Apache-2.0
//
// Lines of text without stdio.
#include "os/message.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support/capture.hpp"

namespace hz_test {
namespace {

template <class Message>
std::string Sent(Message& message) {
  Capture capture;
  message.send();
  return capture.Text();
}

TEST(Message, TextAndNumbers) {
  hz::os::Message message;
  message.text("a=")
      .decimal(0)
      .text(" b=")
      .decimal(UINT64_MAX)
      .text(" c=0x")
      .hex(0)
      .text(" d=0x")
      .hex(0x7f00DEADbeef1230);
  EXPECT_EQ("a=0 b=18446744073709551615 c=0x0 d=0x7f00deadbeef1230", Sent(message));
}

TEST(Message, NothingSaidNothingSent) {
  hz::os::Message message;
  EXPECT_EQ("", Sent(message.text("")));
}

TEST(Message, NameLeavesRoomForTheRestOfALine) {
  hz::os::LongMessage message;
  const std::string name(1000, 'n');
  message.name(name.c_str()).text("}\n");
  EXPECT_EQ(name.substr(0, 255) + "}\n", Sent(message));
}

template <class Message>
void ExpectCutOff(std::size_t least) {
  Message message;
  std::string all;
  for (int i = 0; i < 1000; ++i) {
    message.text("0123456789");
    all += "0123456789";
  }
  message.decimal(42).hex(42);
  const std::string sent = Sent(message);
  EXPECT_GE(sent.size(), least);
  EXPECT_LT(sent.size(), all.size());
  EXPECT_EQ(all.substr(0, sent.size()), sent);
}

TEST(Message, WhatDoesNotFitIsCutOff) {
  ExpectCutOff<hz::os::Message>(640);
  ExpectCutOff<hz::os::LongMessage>(1024);
}

}  // namespace
}  // namespace hz_test
