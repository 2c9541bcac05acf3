// SPDX-License-Identifier: Apache-2.0
//
// Linux: reads dynamic symbol tables. See linux_symbols.hpp. The loader's list of images is `_r_debug`, which
// it keeps for debuggers.
#include "os/linux_symbols.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <atomic>

#include "base/units.hpp"
#include "os/calls.hpp"
#include "os/posix.hpp"

// Under our own names: the C libraries' headers declare them in different ways, or not at all. The first is
// glibc's alone; the second is the linker's, in every library and in programs with a dynamic linker.
extern "C" __attribute__((weak)) const r_debug loaded_images __asm__("_r_debug");
extern "C" __attribute__((weak)) const ElfW(Dyn) own_dynamic_section[] __asm__("_DYNAMIC");
// Weak: before glibc 2.34 they live in libdl, which we must not need; a static program has none.
extern "C" __attribute__((weak)) decltype(dladdr) dladdr;
extern "C" __attribute__((weak)) decltype(dlopen) dlopen;

namespace hz::os {
namespace {

bool is_same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

// One program or library, by its dynamic section.
class Image {
 public:
  Image(std::uintptr_t bias, const ElfW(Dyn) * entry) : bias_(bias) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_SYMTAB) symbols_ = at<ElfW(Sym)>(*entry);
      if (entry->d_tag == DT_STRTAB) names_ = at<char>(*entry);
      if (entry->d_tag == DT_VERSYM) versions_ = at<ElfW(Half)>(*entry);
      if (entry->d_tag == DT_HASH) hash_ = at<std::uint32_t>(*entry);
      if (entry->d_tag == DT_GNU_HASH) gnu_hash_ = at<std::uint32_t>(*entry);
    }
  }

  void* function(const char* name) const {
    const Symbol found = symbol(name, STT_FUNC);
    return pointer(found.at);
  }
  Symbol symbol(const char* name, unsigned type) const {
    if (symbols_ == nullptr || names_ == nullptr) return {};
    return gnu_hash_ != nullptr ? by_gnu_hash(name, type)
           : hash_ != nullptr   ? by_number(name, type)
                                : Symbol{};
  }

 private:
  static constexpr unsigned kNotDefault = 0x8000;  // of a version

  // The loader may have put addresses there, or left what the linker wrote.
  template <class T>
  const T* at(const ElfW(Dyn) & entry) const {
    const std::uintptr_t value = entry.d_un.d_ptr;
    return static_cast<const T*>(pointer(value < bias_ ? value + bias_ : value));
  }
  Symbol symbol_if(std::uint32_t number, const char* name, unsigned type) const {
    const ElfW(Sym)& symbol = symbols_[number];
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != type) return {};
    if (versions_ != nullptr && (versions_[number] & kNotDefault) != 0) return {};
    if (!is_same(names_ + symbol.st_name, name)) return {};
    return {bias_ + symbol.st_value, symbol.st_size};
  }
  Symbol by_number(const char* name, unsigned type) const {
    const std::uint32_t count = hash_[1];
    for (std::uint32_t number = 1; number < count; ++number)
      if (const Symbol found = symbol_if(number, name, type); found.at != 0) return found;
    return {};
  }
  Symbol by_gnu_hash(const char* name, unsigned type) const {
    std::uint32_t hash = 5381;
    for (const char* c = name; *c != 0; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
    const std::uint32_t buckets = gnu_hash_[0], first = gnu_hash_[1], filter_words = gnu_hash_[2];
    if (buckets == 0) return {};  // the library has no symbols
    const std::uint32_t* const bucket = gnu_hash_ + 4 + filter_words * (sizeof(ElfW(Addr)) / 4);
    const std::uint32_t* const chain = bucket + buckets;
    for (std::uint32_t number = bucket[hash % buckets]; number >= first; ++number) {
      const std::uint32_t one = chain[number - first];
      const Symbol found = (one | 1) == (hash | 1) ? symbol_if(number, name, type) : Symbol{};
      if (found.at != 0 || (one & 1) != 0) return found;
    }
    return {};
  }

  const std::uintptr_t bias_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;
  const std::uint32_t *hash_ = nullptr, *gnu_hash_ = nullptr;
};

void* function_of(const link_map& image, const char* name) {
  return Image(image.l_addr, image.l_ld).function(name);
}
void* first_of(const link_map* images, const link_map* but, const char* name) {
  for (; images != nullptr; images = images->l_next) {
    void* const found = images == but ? nullptr : function_of(*images, name);
    if (found != nullptr) return found;
  }
  return nullptr;
}

// An image, as the loader describes it.
struct Loaded {
  Loaded(const dl_phdr_info& image, std::uintptr_t caller) : bias(image.dlpi_addr) {
    for (unsigned i = 0; i < image.dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = image.dlpi_phdr[i];
      const std::uintptr_t begin = bias + part.p_vaddr;
      if (part.p_type == PT_DYNAMIC) dynamic = static_cast<const ElfW(Dyn)*>(pointer(begin));
      if (part.p_type == PT_LOAD) holds_caller = holds_caller || caller - begin < part.p_memsz;
    }
  }
  bool is_ours() const { return dynamic == own_dynamic_section; }
  void* function(const char* name) const {
    return dynamic == nullptr ? nullptr : Image(bias, dynamic).function(name);
  }

  std::uintptr_t bias;
  const ElfW(Dyn) * dynamic = nullptr;
  bool holds_caller = false;
};

struct Search {
  const std::uintptr_t caller;
  const char* const name;
  void* near = nullptr;
  void* elsewhere = nullptr;

  static int visit(dl_phdr_info* image, std::size_t, void* search) {
    static_cast<Search*>(search)->look_into(Loaded(*image, static_cast<Search*>(search)->caller));
    return 0;
  }
  void look_into(const Loaded& image) {
    if (image.is_ours()) return;
    void*& found = image.holds_caller ? near : elsewhere;
    if (found == nullptr) found = image.function(name);
  }
};

// By the C library's function: ThreadSanitizer wraps it, and calls dlsym before its wrapper works.
int visit_images(int (*visit)(dl_phdr_info*, std::size_t, void*), void* search) {
  const auto theirs = reinterpret_cast<decltype(&dl_iterate_phdr)>(c_library_function("dl_iterate_phdr"));
  return (theirs != nullptr ? theirs : &dl_iterate_phdr)(visit, search);
}

// In the order of loading: us, then the caller, then what it finds first.
struct NextSearch {
  const std::uintptr_t caller;
  const char* const name;
  bool has_passed_us = false, has_passed_caller = false;
  void* found = nullptr;

  static int visit(dl_phdr_info* image, std::size_t, void* search) {
    return static_cast<NextSearch*>(search)->ends_at(
        Loaded(*image, static_cast<NextSearch*>(search)->caller));
  }
  int ends_at(const Loaded& image) {
    if (has_passed_caller) found = image.function(name);
    if (image.is_ours()) has_passed_us = true;
    if (image.holds_caller) has_passed_caller = true;
    return found != nullptr || (has_passed_caller && !has_passed_us) ? 1 : 0;
  }
};

struct SearchAll {
  const char* const* const names;
  Symbol* const out;
  const unsigned count;

  static int visit(dl_phdr_info* image, std::size_t, void* search) {
    return static_cast<const SearchAll*>(search)->look_into(Loaded(*image, 0)) ? 1 : 0;
  }
  bool look_into(const Loaded& loaded) const {
    if (loaded.dynamic == nullptr || loaded.is_ours()) return false;
    const Image image(loaded.bias, loaded.dynamic);
    for (unsigned i = 0; i < count; ++i) {
      out[i] = image.symbol(names[i], STT_FUNC);
      if (out[i].at == 0 && i == 0) return false;
      if (out[i].at == 0) out[i] = image.symbol(names[i], STT_OBJECT);
    }
    return true;
  }
};

}  // namespace

bool symbols_of_one_image(const char* const* names, Symbol* out, unsigned count) {
  const KeepErrno keep;
  const SearchAll search = {names, out, count};
  return visit_images(&SearchAll::visit, const_cast<SearchAll*>(&search)) != 0;
}

bool keep_loaded(const void* inside) {
  const KeepErrno keep;
  Dl_info image;
  if (dladdr == nullptr || dlopen == nullptr || dladdr(inside, &image) == 0) return false;
  if (auxiliary_value(AT_PHDR) - address(image.dli_fbase) == sizeof(ElfW(Ehdr))) return true;  // the program
  return dlopen(image.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
}

void* function_near(const void* caller, const char* name, bool anywhere) {
  const KeepErrno keep;
  Search search = {address(caller), name};
  visit_images(&Search::visit, &search);
  return search.near != nullptr || !anywhere ? search.near : search.elsewhere;
}

bool is_c_library_next(const void* caller, const char* name) {
  const KeepErrno keep;
  NextSearch search = {address(caller), name};
  visit_images(&NextSearch::visit, &search);
  if (!search.has_passed_us || !search.has_passed_caller) return false;
  void* const theirs = c_library_function(name);
  return theirs != nullptr && (search.found == nullptr || search.found == theirs);
}

void* loaded_function(const char* name) { return function_near(nullptr, name, true); }

void* next_function(const char* name) {
  if (&loaded_images == nullptr) return nullptr;
  const link_map* const all = loaded_images.r_map;
  const link_map* ours = all;
  while (ours != nullptr && ours->l_ld != own_dynamic_section) ours = ours->l_next;
  void* const behind = ours == nullptr ? nullptr : first_of(ours->l_next, nullptr, name);
  return behind != nullptr ? behind : first_of(all, ours, name);
}

void* c_library_function(const char* name) {
  static constinit std::atomic<const link_map*> known{nullptr};
  const link_map* image = known.load(std::memory_order_relaxed);
  if (image == nullptr) {
    image = &loaded_images == nullptr ? nullptr : loaded_images.r_map;
    while (image != nullptr && function_of(*image, "gnu_get_libc_version") == nullptr) image = image->l_next;
    known.store(image, std::memory_order_relaxed);
  }
  return image == nullptr ? nullptr : function_of(*image, name);
}

void* vdso_function(std::uintptr_t base, const char* name) {
  if (base == 0) return nullptr;
  const auto& header = *static_cast<const ElfW(Ehdr)*>(pointer(base));
  const auto* const parts = static_cast<const ElfW(Phdr)*>(pointer(base + header.e_phoff));
  std::uintptr_t bias = 0, dynamic = 0;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    if (parts[i].p_type == PT_LOAD && parts[i].p_offset == 0) bias = base - parts[i].p_vaddr;
    if (parts[i].p_type == PT_DYNAMIC) dynamic = parts[i].p_vaddr;
  }
  if (dynamic == 0) return nullptr;
  return Image(bias, static_cast<const ElfW(Dyn)*>(pointer(bias + dynamic))).function(name);
}

}  // namespace hz::os
