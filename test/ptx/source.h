// SPDX-License-Identifier: BSD-3-Clause
// PTX as text and as syntax (PTX ISA 9.0, chapters 4 and 5). Nothing here knows an instruction.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace puone::ptx {

/// An operand of a statement.
struct Term {
  enum class Kind : uint8_t {
    kName,    // %r1, a label, a variable, a function; with an offset: variable+4
    kNumber,  // bits, as an integer
    kFloat32, // 0f3F800000
    kFloat64, // 0d3FF0000000000000
    kAddress, // [name+offset], [offset]
    kList     // {a, b}, (a, b) or a|b
  };
  Kind kind = Kind::kName;
  std::string name;
  uint64_t bits = 0;
  int64_t offset = 0;
  std::vector<Term> parts;
};

struct Variable {
  std::string space; // "param", "shared", "local", "global", "const"
  std::string name;
  uint32_t align = 1;
  uint64_t bytes = 0;
  std::vector<uint8_t> initial; // empty: zeros, where the space has any
};

struct Statement {
  uint32_t line = 0;
  std::string guard; // of @%p1 and @!%p1, without either sign; empty: none
  bool unless = false;
  std::string word; // "add.s32"
  std::vector<Term> terms;
};

/// One piece of a function's body.
struct Item {
  enum class Kind : uint8_t {
    kStatement,
    kLabel,
    kOpen, // {
    kClose,
    kRegisters,
    kVariable,
    kUsedBytes // .pragma "used_bytes_mask": of the load that follows
  };
  Kind kind = Kind::kStatement;
  Statement statement;
  std::string name;   // of a label; the stem of registers
  std::string type;   // of registers: "b32", "pred" ...
  uint32_t count = 0; // of registers: stem0 ... ; 0: the stem itself is the register
  uint64_t mask = 0;  // of kUsedBytes
  Variable variable;
};

struct Function {
  std::string name;
  bool is_entry = false;
  uint32_t line = 0; // where it begins
  std::vector<Variable> results, parameters;
  uint32_t max_threads = 1024; // .maxntid
  std::string_view body;       // empty: only declared
  uint32_t body_line = 0;

  /// The body's pieces. Throws Violation(kSyntax).
  std::vector<Item> items() const;
};

/// One PTX file.
class Module {
 public:
  /// Throws Violation(kSyntax).
  explicit Module(std::string text);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& text() const {
    return text_;
  }
  /// 16 hexadecimal digits that name the text.
  const std::string& id() const {
    return id_;
  }
  std::string_view line(uint32_t number) const; // from 1
  uint32_t lines() const {
    return static_cast<uint32_t>(starts_.size());
  }
  /// NULL if the module does not define it.
  const Function* find(const std::string& name) const;
  const std::map<std::string, Function>& functions() const {
    return functions_;
  }
  /// Module variables: shared, global and const.
  const std::vector<Variable>& variables() const {
    return variables_;
  }

 private:
  const std::string text_;
  const std::string id_;
  std::vector<size_t> starts_; // of the lines
  std::map<std::string, Function> functions_;
  std::vector<Variable> variables_;
};

/// 16 hexadecimal digits that name a text.
std::string textId(std::string_view text);

/// Bytes of a type: "b8" 1, "f64" 8. Throws Violation(kSyntax).
uint32_t typeBytes(std::string_view type);

} // namespace puone::ptx
