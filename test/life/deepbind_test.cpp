// SPDX-License-Identifier: Apache-2.0
//
// Plugins that are loaded with RTLD_DEEPBIND share our heap: what the program makes they may free, and the
// other way round. And dlopen is otherwise what it always was: all other flags, errors, and the caller's
// RUNPATH.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "support/line.hpp"
#include "support/opaque.hpp"

namespace hz_test {
namespace {

const std::string kFolder = HZ_TEST_PLUGINS;

std::string Path(const char* name) { return kFolder + "/" + name; }

struct Plugin {
  explicit Plugin(void* from) : handle(from) {
    if (handle == nullptr) return;
    free = reinterpret_cast<void (*)(void*)>(dlsym(handle, "plugin_free"));
    make = reinterpret_cast<void* (*)(std::size_t)>(dlsym(handle, "plugin_make"));
    copy = reinterpret_cast<char* (*)(const char*)>(dlsym(handle, "plugin_copy"));
  }
  void* handle;
  void (*free)(void*) = nullptr;
  void* (*make)(std::size_t) = nullptr;
  char* (*copy)(const char*) = nullptr;
};

void Share(const Plugin& plugin) {
  ASSERT_NE(nullptr, plugin.handle) << dlerror();
  void* theirs = plugin.make(100);
  ASSERT_TRUE(Owned(theirs)) << "the plugin allocates from another heap";
  std::free(theirs);
  char* text = plugin.copy("made by the C library for the plugin");
  ASSERT_TRUE(Owned(text));
  EXPECT_STREQ("made by the C library for the plugin", text);
  std::free(text);
  for (std::size_t size = 1; size < std::size_t{8} << 20; size *= 3) plugin.free(Opaque(std::malloc(size)));
}

TEST(DeepBind, PluginSharesTheHeap) {
  for (const int binding : {RTLD_LAZY, RTLD_NOW}) {
    for (const int scope : {RTLD_LOCAL, RTLD_GLOBAL}) {
      const char* name = binding == RTLD_LAZY ? "libhz-plugin-lazy.so" : "libhz-plugin-now.so";
      const Plugin plugin(dlopen(Path(name).c_str(), binding | scope | RTLD_DEEPBIND));
      Share(plugin);
      if (plugin.handle != nullptr) dlclose(plugin.handle);
    }
  }
}

void* HostLoad(const char* name, int flags) {
  void* host = dlopen(Path("libhz-host.so").c_str(), RTLD_NOW);
  EXPECT_NE(nullptr, host) << dlerror();
  if (host == nullptr) return nullptr;
  return reinterpret_cast<void* (*)(const char*, int)>(dlsym(host, "host_load"))(name, flags);
}

TEST(DeepBind, RunpathIsThatOfTheCaller) {
  ASSERT_EQ(nullptr, dlopen("libhz-inner.so", RTLD_NOW))
      << "found without the host's RUNPATH: this would show nothing";
  Share(Plugin(HostLoad("libhz-inner.so", RTLD_NOW | RTLD_DEEPBIND)));
}

TEST(DeepBind, OriginIsThatOfTheCaller) {
  ASSERT_EQ(nullptr, dlopen("$ORIGIN/inner/libhz-inner-too.so", RTLD_NOW));
  EXPECT_NE(nullptr, HostLoad("$ORIGIN/inner/libhz-inner-too.so", RTLD_NOW));
}

TEST(DeepBind, OtherFlagsArriveUnchanged) {
  const std::string path = Path("libhz-plugin-flags.so");
  EXPECT_EQ(nullptr, dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) << "RTLD_NOLOAD loads";
  void* local = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(nullptr, local) << dlerror();
  EXPECT_EQ(nullptr, dlsym(RTLD_DEFAULT, "plugin_mark")) << "RTLD_LOCAL is seen by all";
  EXPECT_EQ(local, dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL));
  EXPECT_NE(nullptr, dlsym(RTLD_DEFAULT, "plugin_mark")) << "RTLD_GLOBAL is not seen";
  EXPECT_EQ(local, dlopen(path.c_str(), RTLD_NOW | RTLD_NODELETE));
  for (int opened = 0; opened < 3; ++opened) EXPECT_EQ(0, dlclose(local));
  EXPECT_EQ(local, dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) << "RTLD_NODELETE is lost";
}

TEST(DeepBind, ErrorsAreTold) {
  EXPECT_EQ(nullptr, dlopen("/no/such/library.so", RTLD_NOW | RTLD_DEEPBIND));
  const char* error = dlerror();
  ASSERT_NE(nullptr, error);
  EXPECT_NE(nullptr, std::strstr(error, "/no/such/library.so")) << error;
  EXPECT_EQ(nullptr, dlopen(Path("libhz-host.so").c_str(), 0)) << "neither RTLD_LAZY nor RTLD_NOW";
  EXPECT_NE(nullptr, dlerror());
}

TEST(DeepBind, TheProgramItselfCanBeOpened) {
  void* program = dlopen(nullptr, RTLD_NOW | RTLD_DEEPBIND);
  ASSERT_NE(nullptr, program);
  EXPECT_NE(nullptr, dlsym(program, "malloc"));
  EXPECT_EQ(0, dlclose(program));
}

}  // namespace
}  // namespace hz_test
