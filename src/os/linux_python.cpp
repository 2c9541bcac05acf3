// SPDX-License-Identifier: Apache-2.0
//
// Linux: reads CPython's records of its frames. See python.hpp. Sources: the public headers of CPython 3.8 to
// 3.13 (cpython/code.h, cpython/pystate.h, cpython/unicodeobject.h, frameobject.h, internal/pycore_frame.h),
// and Objects/lnotab_notes.txt, Objects/locations.md for the tables of lines.
//
// A walk is safe for these reasons:
// - A thread's own records are changed by this thread alone, and it is inside of malloc. So the walk needs no
//   GIL. They are found by the thread's own storage, and must carry its number.
// - An interpreter that has not begun, or that ends, is not asked (Py_IsInitialized).
// - A pointer is followed if it is aligned and a program can have it. A code object, a name and a table must
//   have the interpreter's own type at their beginning before more of them is read.
// - All loops are bounded.
#include "os/python.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

#include "base/text.hpp"
#include "base/units.hpp"
#include "os/linux_symbols.hpp"

namespace hz::os {
namespace {

// --- what differs by version

enum class Lines { kPairs, kRanges, kLocations };  // tables of 3.8 and 3.9; of 3.10; since 3.11

struct Version {
  unsigned minor;           // of 3
  unsigned code, function;  // sizes of code and frame objects: these types state them
  // In a thread's state: its number, and its innermost frame, behind one more pointer if `is_behind`.
  unsigned thread, frame;
  bool is_behind;
  unsigned behind;
  // In a frame.
  unsigned previous, code_of_frame, instruction, owner;
  // In a code object.
  unsigned file, name, first_line, lines, instructions;
  Lines kind;
  unsigned ascii, compact;  // sizes of the heads of texts
};
constexpr Version kVersions[] = {
    {8, 176, 368, 176, 24, false, 0, 24, 32, 104, 0, 104, 112, 40, 120, 0, Lines::kPairs, 48, 72},
    {9, 176, 368, 176, 24, false, 0, 24, 32, 104, 0, 104, 112, 40, 120, 0, Lines::kPairs, 48, 72},
    {10, 176, 360, 176, 24, false, 0, 24, 32, 96, 0, 104, 112, 40, 120, 0, Lines::kRanges, 48, 72},
    {11, 184, 120, 152, 56, true, 8, 48, 32, 56, 69, 112, 128, 72, 136, 184, Lines::kLocations, 48, 72},
    {12, 192, 120, 136, 56, true, 0, 8, 0, 56, 70, 112, 128, 68, 136, 192, Lines::kLocations, 40, 56},
    {13, 200, 136, 152, 72, false, 0, 8, 0, 56, 70, 112, 128, 68, 136, 200, Lines::kLocations, 40, 56}};
constexpr unsigned kOwnedByStack = 3;  // a record that stands where evaluation begins, since 3.12

// Offsets that all versions share.
constexpr unsigned kType = 8, kBytesOfObject = 32;  // of an object; of a type
constexpr unsigned kCount = 16, kBytes = 32;        // of a bytes object
constexpr unsigned kLength = 16, kState = 32;       // of a text

// --- the interpreter

struct Interpreter {
  const Version* version;
  int (*is_initialized)();
  void* (*own_state)();      // of this thread
  void* (*current_state)();  // since 3.12 of this thread, too: the one that runs
  std::uintptr_t code_type, text_type, bytes_type;
  Code loop;
  bool is_program;
};
constinit Interpreter python = {};
constinit std::atomic<bool> is_found{false};
constinit std::atomic<bool> has_begun{false};  // the program's own interpreter

template <class T>
T load(std::uintptr_t at) {
  return *static_cast<const T*>(pointer(at));
}
std::uintptr_t word(std::uintptr_t at) { return load<std::uintptr_t>(at); }

constexpr std::uintptr_t kLowest = 64 * kKiB, kHighest = std::uintptr_t{1} << 56;
bool is_plausible(std::uintptr_t at) { return at >= kLowest && at < kHighest && at % sizeof(void*) == 0; }
bool is_of(std::uintptr_t object, std::uintptr_t type) {
  return is_plausible(object) && word(object + kType) == type;
}

// 3.minor.patch, of a release.
unsigned minor_of(const char* text) {
  TextView rest(text);
  std::size_t major = 0, minor = 0, patch = 0;
  if (!number(rest, 3, major) || major != 3 || !cut(rest, '.').empty()) return 0;
  if (!number(rest, 99, minor) || !cut(rest, '.').empty()) return 0;
  if (!number(rest, 999, patch) || (!rest.empty() && rest[0] != ' ' && rest[0] != '+')) return 0;
  return static_cast<unsigned>(minor);
}

enum Name { kEval, kIsInitialized, kOwnState, kState12, kState13, kGetVersion, kTypes };
constexpr const char* kNames[] = {"_PyEval_EvalFrameDefault",
                                  "Py_IsInitialized",
                                  "PyGILState_GetThisThreadState",
                                  "_PyThreadState_UncheckedGet",
                                  "PyThreadState_GetUnchecked",
                                  "Py_GetVersion",
                                  "PyCode_Type",
                                  "PyFrame_Type",
                                  "PyUnicode_Type",
                                  "PyBytes_Type",
                                  "PyType_Type"};
constexpr unsigned kNameCount = sizeof kNames / sizeof *kNames;

const Version* version_of(const Symbol* found) {
  for (unsigned i = 0; i < kNameCount; ++i)
    if (found[i].at == 0 && i != kState12 && i != kState13) return nullptr;
  const std::uintptr_t type = found[kNameCount - 1].at;
  for (unsigned i = kTypes; i < kNameCount; ++i)
    if (word(found[i].at + kType) != type) return nullptr;  // another head of objects
  const unsigned minor = minor_of(reinterpret_cast<const char* (*)()>(found[kGetVersion].at)());
  for (const Version& one : kVersions)
    if (one.minor == minor && word(found[kTypes].at + kBytesOfObject) == one.code &&
        word(found[kTypes + 1].at + kBytesOfObject) == one.function)
      return &one;
  return nullptr;
}

}  // namespace

bool PythonStack::has_interpreter() { return is_found.load(std::memory_order_acquire); }

bool PythonStack::find_interpreter() {
  if (has_interpreter()) return true;
  Symbol found[kNameCount];
  if (!symbols_of_one_image(kNames, found, kNameCount)) return false;
  const Version* const version = version_of(found);
  if (version == nullptr || !keep_loaded(pointer(found[kTypes].at))) return false;
  const std::uintptr_t current = found[version->minor >= 13 ? kState13 : kState12].at;
  python = {.version = version,
            .is_initialized = reinterpret_cast<int (*)()>(found[kIsInitialized].at),
            .own_state = reinterpret_cast<void* (*)()>(found[kOwnState].at),
            .current_state = reinterpret_cast<void* (*)()>(version->minor >= 12 ? current : 0),
            .code_type = found[kTypes].at,
            .text_type = found[kTypes + 2].at,
            .bytes_type = found[kTypes + 3].at,
            .loop = {found[kEval].at, found[kEval].at + found[kEval].bytes},
            .is_program = begins_with(program_name(), "python")};
  is_found.store(true, std::memory_order_release);  // pairs with has_interpreter()
  return true;
}

bool PythonStack::program_ends() {
  return has_begun.load(std::memory_order_relaxed) && python.is_initialized() == 0;
}

PythonStack::PythonStack() {
  if (!has_interpreter() || python.is_initialized() == 0) return;
  if (python.is_program) has_begun.store(true, std::memory_order_relaxed);
  const Version& version = *python.version;
  std::uintptr_t state = python.current_state == nullptr ? 0 : address(python.current_state());
  if (state == 0) state = address(python.own_state());
  if (!is_plausible(state) || word(state + version.thread) != static_cast<std::uintptr_t>(pthread_self()))
    return;
  std::uintptr_t frame = word(state + version.frame);
  evaluation_.code = python.loop;
  if (version.is_behind && is_plausible(frame)) {
    evaluation_.at = frame;  // it lies in the frame of the function that evaluates
    frame = word(frame + version.behind);
  }
  frame_ = is_plausible(frame) ? frame : 0;
  if (version.minor < 13) return;
  // The record where evaluation begins lies there.
  for (std::uintptr_t at = frame_, many = 0; is_plausible(at) && many < kMost; ++many) {
    if (load<unsigned char>(at + version.owner) == kOwnedByStack) {
      evaluation_.at = at;
      return;
    }
    at = word(at + version.previous);
  }
}

// --- lines

namespace {

struct Table {
  std::uintptr_t at, end;
};

unsigned char byte(std::uintptr_t at) { return load<unsigned char>(at); }
int signed_byte(std::uintptr_t at) { return load<std::int8_t>(at); }

// Bytes of instructions and lines by which they move on.
int line_of_pairs(Table table, long instruction, int line) {
  for (long at = 0; table.at + 1 < table.end; table.at += 2) {
    at += byte(table.at);
    if (at > instruction) break;
    line += signed_byte(table.at + 1);
  }
  return line;
}

// Lines first, and then the bytes that are of this line.
int line_of_ranges(Table table, long instruction, int line) {
  constexpr int kNoLine = -128;
  int known = line;
  for (long end = 0; table.at + 1 < table.end; table.at += 2) {
    const int step = signed_byte(table.at + 1);
    if (step != kNoLine) known += step;
    end += byte(table.at);
    if (instruction < end) return step == kNoLine ? line : known;
  }
  return line;
}

// Numbers of six bits a byte, the lowest first; the lowest bit of a signed one is its sign.
int signed_number(std::uintptr_t& at, std::uintptr_t end) {
  constexpr unsigned kMore = 0x40, kBits = 6;
  unsigned value = 0;
  for (unsigned shift = 0; at < end && shift < 32; shift += kBits) {
    const unsigned one = byte(at++);
    value |= (one & (kMore - 1)) << shift;
    if ((one & kMore) == 0) break;
  }
  const int half = static_cast<int>(value >> 1);
  return (value & 1) != 0 ? -half : half;
}

// An entry begins with a byte of which the highest bit is set: its kind, and how many instructions it is of.
int line_of_locations(Table table, long instruction, int line) {
  constexpr unsigned kFirst = 0x80, kOneLine = 10, kTwoLines = 12, kNoColumns = 13, kLong = 14;
  constexpr long kInstruction = 2;
  const int whole = line;
  for (long end = 0; table.at < table.end;) {
    const unsigned first = byte(table.at++);
    if ((first & kFirst) == 0) return whole;
    const unsigned kind = first >> 3 & 15;
    if (kind >= kOneLine && kind <= kTwoLines) line += static_cast<int>(kind - kOneLine);
    if (kind == kNoColumns || kind == kLong) line += signed_number(table.at, table.end);
    end += kInstruction * static_cast<long>((first & 7) + 1);
    if (instruction < end) return kind > kLong ? whole : line;
    while (table.at < table.end && (byte(table.at) & kFirst) == 0) ++table.at;
  }
  return whole;
}

int line_of(std::uintptr_t code, std::uintptr_t frame) {
  const Version& version = *python.version;
  const int first = load<int>(code + version.first_line);
  const std::uintptr_t bytes = word(code + version.lines);
  if (!is_of(bytes, python.bytes_type)) return first;
  constexpr std::uintptr_t kMostBytes = 64 * kKiB;  // of a table: what lies behind has the function's line
  const std::uintptr_t count = word(bytes + kCount);
  const Table table = {bytes + kBytes, bytes + kBytes + (count < kMostBytes ? count : kMostBytes)};
  switch (version.kind) {
    case Lines::kPairs: return line_of_pairs(table, load<int>(frame + version.instruction), first);
    case Lines::kRanges: return line_of_ranges(table, 2L * load<int>(frame + version.instruction), first);
    case Lines::kLocations: break;
  }
  const std::uintptr_t at = word(frame + version.instruction), begin = code + version.instructions;
  return at < begin ? first : line_of_locations(table, static_cast<long>(at - begin), first);
}

// --- texts

char* put_letter(char* out, std::uint32_t letter) {
  const auto put = [&](std::uint32_t byte) { *out++ = static_cast<char>(byte); };
  const auto follow = [&](unsigned shift) { put(0x80 | (letter >> shift & 0x3F)); };
  if (letter < 0x80) {
    put(letter < ' ' || letter == 0x7F ? '?' : letter);
  } else if (letter < 0x800) {
    put(0xC0 | letter >> 6), follow(0);
  } else if (letter < 0x10000) {
    put(letter >= 0xD800 && letter < 0xE000 ? '?' : 0xE0 | letter >> 12);
    if (letter < 0xD800 || letter >= 0xE000) follow(6), follow(0);
  } else {
    put(0xF0 | (letter >> 18 & 7)), follow(12), follow(6), follow(0);
  }
  return out;
}

// Writes a text of the interpreter, or as many letters of its beginning or its end as there is room for.
void copy_text(std::uintptr_t text, char* out, std::size_t room, bool keeps_end) {
  *out = 0;
  if (!is_of(text, python.text_type)) return;
  const unsigned state = load<unsigned>(text + kState);
  const unsigned width = state >> 2 & 7;
  const bool is_compact = (state >> 5 & 1) != 0, is_ascii = (state >> 6 & 1) != 0;
  if (!is_compact || (width != 1 && width != 2 && width != 4)) return;
  std::uintptr_t at = text + (is_ascii ? python.version->ascii : python.version->compact);
  const std::size_t length = word(text + kLength);
  const std::size_t most = (room - 1) / (is_ascii ? 1 : width == 1 ? 2 : width == 2 ? 3 : 4);
  const std::size_t count = length < most ? length : most;
  if (keeps_end) at += (length - count) * width;
  for (std::size_t i = 0; i < count; ++i, at += width)
    out = put_letter(out, width == 1   ? byte(at)
                          : width == 2 ? load<std::uint16_t>(at)
                                       : load<std::uint32_t>(at));
  *out = 0;
}

}  // namespace

bool PythonStack::next(PythonFunction& out) {
  const Version& version = *python.version;
  while (frame_ != 0 && left_-- != 0) {
    const std::uintptr_t frame = frame_, before = word(frame + version.previous);
    const std::uintptr_t code = word(frame + version.code_of_frame);
    frame_ = is_plausible(before) ? before : 0;
    if (version.owner != 0 && byte(frame + version.owner) == kOwnedByStack) continue;
    if (!is_of(code, python.code_type)) break;
    copy_text(word(code + version.file), out.file, sizeof out.file, true);
    copy_text(word(code + version.name), out.name, sizeof out.name, false);
    const int line = line_of(code, frame);
    out.line = line > 0 ? static_cast<std::uint32_t>(line) : 0;
    return true;
  }
  frame_ = 0;
  return false;
}

}  // namespace hz::os
