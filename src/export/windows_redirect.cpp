// SPDX-License-Identifier: Apache-2.0
//
// Windows: the malloc family of the C runtimes is this heap's. Nothing can take the place of malloc by its
// name there, so the functions that ucrtbase.dll and msvcrt.dll export are redirected when this library is
// loaded, in each of them all or none; what calls them by whatever name, from outside or inside of the
// runtime, comes here. Part of the redirecting DLL. Costs a call of the operating system's more than the
// direct API, and a look whose block it is: a program frees blocks that the runtime handed out before.
#include <algorithm>

#include "export/c_rules.hpp"
#include "os/message.hpp"
#include "os/windows_redirect.hpp"

using hz::ThisHeap;
using hz::ThisLibrary;

namespace {

using hz::address;
using hz::pointer;

// A C runtime, and what we ask of it. `error` is its errno, and not ours: there may be several.
struct Runtime {
  const char* file;
  void* heap;
  int* (*error)();
  // Not in each of them: whether malloc calls the new_handler, and its call; 0: there is none.
  int (*new_mode)();
  int (*call_new_handler)(size_t);
};
Runtime runtimes[] = {{.file = "msvcrt.dll"}, {.file = "ucrtbase.dll"}};

constexpr size_t kNoSize = SIZE_MAX;

// What runtime number N is to do, by what Microsoft says of it.
template <unsigned N>
struct Family {
  static int* error() { return runtimes[N].error(); }
  static void* heap() { return runtimes[N].heap; }

  // --- whose it is

  // The runtime's own, handed out before or beside us.
  static bool is_older(const void* block) { return block != nullptr && hz::os::is_heap_block(heap(), block); }
  static bool is_known(const void* block) { return ThisHeap::owns(block) || is_older(block); }

  // Reports what is no block.
  static size_t usable(const void* block) {
    return ThisHeap::owns(block) || !is_older(block) ? ThisHeap::usable_size(block)
                                                     : hz::os::heap_block_bytes(heap(), block);
  }

  // --- allocate and free; at the end of the process no code may wait for a thread

  static void* at_once(size_t size, size_t alignment) {
    if (HZ_UNLIKELY(hz::os::is_process_ending()) && alignment <= hz::kMinAlign)
      return hz::os::allocate_heap_block(heap(), size, false);
    return alignment <= hz::kMinAlign ? ThisHeap::malloc(size) : ThisHeap::aligned(alignment, size);
  }
  // If memory is short the new_handler may free some, if the program set malloc to call it.
  template <class Try>
  HZ_COLD static void* try_again(size_t size, Try again) {
    const Runtime& r = runtimes[N];
    const bool calls = r.new_mode != nullptr && r.call_new_handler != nullptr && r.new_mode() != 0;
    while (calls && size <= PTRDIFF_MAX && r.call_new_handler(size) != 0)
      if (void* block = again()) return block;
    return no_memory();
  }
  static void* allocate(size_t size, size_t alignment) {
    void* block = at_once(size, alignment);
    return HZ_LIKELY(block != nullptr) ? block : try_again(size, [&] { return at_once(size, alignment); });
  }
  HZ_COLD static void* no_memory() {
    *error() = ENOMEM;
    return nullptr;
  }
  HZ_COLD static void* invalid() {
    *error() = EINVAL;
    return nullptr;
  }

  // All that the block can hold from there on: what grows later must not show what was there.
  static void* clear_from(void* block, size_t from) {
    if (block == nullptr) return nullptr;
    const size_t bytes = usable(block);
    if (from < bytes) memset(static_cast<char*>(block) + from, 0, bytes - from);
    return block;
  }

  // --- malloc and its kin

  static void* malloc(size_t size) { return allocate(size, 1); }
  static void free(void* block) {
    if (HZ_UNLIKELY(block == nullptr || hz::os::is_process_ending())) return;
    if (HZ_LIKELY(ThisHeap::owns(block)) || !is_older(block)) return ThisHeap::free(block);
    hz::os::free_heap_block(heap(), block);
  }
  static void* calloc(size_t count, size_t size) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return no_memory();
    if (HZ_UNLIKELY(hz::os::is_process_ending())) return hz::os::allocate_heap_block(heap(), bytes, true);
    void* block = ThisHeap::calloc(1, bytes);
    if (block == nullptr) block = try_again(bytes, [&] { return ThisHeap::calloc(1, bytes); });
    return clear_from(block, bytes);
  }
  static void* realloc(void* block, size_t size) {
    if (block == nullptr) return malloc(size);
    if (size == 0) return free(block), nullptr;
    if (!ThisHeap::owns(block) && is_older(block)) return moved(block, size, usable(block), malloc(size));
    void* to = ThisHeap::realloc(block, size);
    return to != nullptr ? to : try_again(size, [&] { return ThisHeap::realloc(block, size); });
  }
  static void* moved(void* from, size_t size, size_t old_size, void* to) {
    if (to == nullptr) return nullptr;
    memcpy(to, from, std::min(size, old_size));
    free(from);
    return to;
  }
  static void* recalloc(void* block, size_t count, size_t size) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return no_memory();
    const size_t old_size = block == nullptr ? 0 : usable(block);
    return clear_from(realloc(block, bytes), std::min(old_size, bytes));
  }
  static size_t size_of(void* block) { return block == nullptr ? (invalid(), kNoSize) : usable(block); }
  static void* expand(void* block, size_t size) {
    if (block == nullptr) return invalid();
    return size <= usable(block) ? block : no_memory();
  }

  // --- aligned blocks. The program says where in the block the aligned address is; unless that is its
  // beginning, the block lies in a larger one, whose address stands before it, as the runtimes do with all of
  // theirs.

  static void** note_of(void* block) {
    return static_cast<void**>(pointer((address(block) & ~(sizeof(void*) - 1)) - sizeof(void*)));
  }
  // What was allocated for it; itself if there is nothing of the kind.
  static void* base_of(void* block) {
    if (block == nullptr || ThisHeap::owns(block)) return block;
    void** const note = note_of(block);
    return hz::os::is_mapped(note, sizeof *note) && is_known(*note) ? *note : block;
  }
  static size_t usable_aligned(void* block) {
    void* const base = base_of(block);
    return usable(base) - (address(block) - address(base));
  }

  static void* aligned_offset_malloc(size_t size, size_t alignment, size_t offset) {
    if (!hz::is_power_of_two(alignment) || (offset != 0 && offset >= size)) return invalid();
    if (alignment < sizeof(void*)) alignment = sizeof(void*);
    if ((offset & (alignment - 1)) == 0) return allocate(size, alignment);
    const size_t more = sizeof(void*) + alignment - 1;
    if (size > PTRDIFF_MAX - more) return no_memory();
    void* const base = allocate(size + more, 1);
    if (base == nullptr) return nullptr;
    void* const block =
        pointer(((address(base) + sizeof(void*) + offset + alignment - 1) & ~(alignment - 1)) - offset);
    *note_of(block) = base;
    return block;
  }
  static void* aligned_offset_realloc(void* block, size_t size, size_t alignment, size_t offset) {
    if (block == nullptr) return aligned_offset_malloc(size, alignment, offset);
    if (size == 0) return aligned_free(block), nullptr;
    const size_t old_size = usable_aligned(block);
    void* const to = aligned_offset_malloc(size, alignment, offset);
    if (to == nullptr) return nullptr;
    memcpy(to, block, std::min(size, old_size));
    aligned_free(block);
    return to;
  }
  static void* aligned_offset_recalloc(void* block, size_t count, size_t size, size_t alignment,
                                       size_t offset) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return no_memory();
    const size_t old_size = block == nullptr ? 0 : usable_aligned(block);
    void* const to = aligned_offset_realloc(block, bytes, alignment, offset);
    const size_t from = std::min(old_size, bytes);
    if (to != nullptr) memset(static_cast<char*>(to) + from, 0, usable_aligned(to) - from);
    return to;
  }
  static void aligned_free(void* block) { free(base_of(block)); }
  static size_t aligned_size_of(void* block, size_t, size_t) {
    return block == nullptr ? (invalid(), kNoSize) : usable_aligned(block);
  }
  static void* aligned_malloc(size_t size, size_t alignment) {
    return aligned_offset_malloc(size, alignment, 0);
  }
  static void* aligned_realloc(void* block, size_t size, size_t alignment) {
    return aligned_offset_realloc(block, size, alignment, 0);
  }
  static void* aligned_recalloc(void* block, size_t count, size_t size, size_t alignment) {
    return aligned_offset_recalloc(block, count, size, alignment, 0);
  }

  // --- all of it

  template <class Function>
  static void* code(Function* function) {
    return reinterpret_cast<void*>(function);
  }
  template <class Function>
  static bool find(void* module, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(hz::os::exported(module, name));
    return function != nullptr;
  }

  static void redirect() {
    Runtime& runtime = runtimes[N];
    void* const module = hz::os::loaded_module(runtime.file);
    if (module == nullptr) return;
    // The operators new stay: they call malloc, or serve themselves and throw as only the runtime can.
    const hz::os::Redirection functions[] = {
        {"malloc", code(&malloc), true},
        {"free", code(&free), true},
        {"calloc", code(&calloc), true},
        {"realloc", code(&realloc), true},
        {"_msize", code(&size_of), true},
        {"_expand", code(&expand), true},
        {"_recalloc", code(&recalloc), false},
        {"_aligned_malloc", code(&aligned_malloc), true},
        {"_aligned_free", code(&aligned_free), true},
        {"_aligned_realloc", code(&aligned_realloc), true},
        {"_aligned_recalloc", code(&aligned_recalloc), false},
        {"_aligned_msize", code(&aligned_size_of), false},
        {"_aligned_offset_malloc", code(&aligned_offset_malloc), true},
        {"_aligned_offset_realloc", code(&aligned_offset_realloc), true},
        {"_aligned_offset_recalloc", code(&aligned_offset_recalloc), false},
        {"_malloc_base", code(&malloc), false},
        {"_free_base", code(&free), false},
        {"_calloc_base", code(&calloc), false},
        {"_realloc_base", code(&realloc), false},
        {"??3@YAXPEAX@Z", code(&free), false},    // operator delete
        {"??_V@YAXPEAX@Z", code(&free), false}};  // operator delete[]
    const char* which = "_get_heap_handle";
    const char* why = "it is not there";
    void* (*heap_of)() = nullptr;
    if (find(module, which, heap_of) && find(module, which = "_errno", runtime.error)) {
      runtime.heap = heap_of();
      if (!find(module, "_query_new_mode", runtime.new_mode))
        find(module, "?_query_new_mode@@YAHXZ", runtime.new_mode);
      find(module, "_callnewh", runtime.call_new_handler);
      why = hz::os::redirect(module, functions, std::size(functions), which);
    }
    if (why == nullptr) return;
    hz::os::Message message;
    message.text("hz: warning: ").text(runtime.file).text(" keeps its own malloc: ");
    message.text(which).text(": ").text(why).text("\n").send();
  }
};

__attribute__((constructor)) void at_start() {
  if (!ThisLibrary::redirects()) return;
  Family<0>::redirect();
  Family<1>::redirect();
}

}  // namespace
