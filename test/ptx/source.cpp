// SPDX-License-Identifier: BSD-3-Clause
#include "source.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <utility>

#include "violation.h"

namespace puone::ptx {
namespace {

bool isWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

bool isWord(char c) {
  return isWordStart(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

[[noreturn]] void complain(uint32_t line, const std::string& what) {
  throw Violation(Kind::kSyntax, "line " + std::to_string(line) + ": " + what);
}

/// Tokens of a text, one after another: words ("ld.param.u64", "%r1", ".reg"), numbers, strings,
/// and single characters.
class Lexer {
 public:
  Lexer(std::string_view text, uint32_t line) : text_(text), line_(line) {
    next();
  }

  std::string_view token() const {
    return token_; // empty at the end
  }
  uint32_t line() const {
    return token_line_;
  }
  size_t position() const {
    return static_cast<size_t>(token_.data() - text_.data());
  }
  bool atEnd() const {
    return token_.empty();
  }
  bool is(std::string_view what) const {
    return token_ == what;
  }

  std::string_view take() {
    const std::string_view taken = token_;
    next();
    return taken;
  }
  bool accept(std::string_view what) {
    if (!is(what)) return false;
    next();
    return true;
  }
  void expect(std::string_view what) {
    if (!accept(what)) {
      complain(line_, "'" + std::string(what) + "' expected, not '" + std::string(token_) + "'");
    }
  }
  /// Behind the brace that matches the one just taken; what is between them.
  std::string_view skipBraces() {
    const size_t begin = position();
    for (int depth = 1;; next()) {
      if (atEnd()) complain(line_, "a brace is not closed");
      if (is("{")) ++depth;
      if (is("}") && --depth == 0) break;
    }
    const std::string_view inside = text_.substr(begin, position() - begin);
    next();
    return inside;
  }

 private:
  void skipSpace() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '\0') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const size_t end = std::min(text_.find("*/", at_), text_.size() - 2);
        for (; at_ < end; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
        at_ = end + 2;
      } else {
        break;
      }
    }
  }

  void next() {
    skipSpace();
    token_line_ = line_;
    const size_t begin = at_;
    if (at_ < text_.size()) {
      const char first = text_[at_++];
      if (first == '"') {
        while (at_ < text_.size() && text_[at_] != '"') ++at_;
        ++at_;
      } else if (isWordStart(first) || std::isdigit(static_cast<unsigned char>(first)) != 0) {
        while (at_ < text_.size() && isWord(text_[at_])) ++at_;
        // An address's space ("::"): cvta.to.shared::cta
        while (text_.substr(at_, 2) == "::") {
          at_ += 2;
          while (at_ < text_.size() && isWord(text_[at_])) ++at_;
        }
      }
    }
    token_ = text_.substr(begin, at_ - begin);
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_;
  uint32_t token_line_ = 0;
  std::string_view token_;
};

uint64_t integer(std::string_view token, uint32_t line) {
  std::string_view digits = token;
  if (!digits.empty() && (digits.back() == 'U' || digits.back() == 'u')) digits.remove_suffix(1);
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
    complain(line, "'" + std::string(token) + "' is not a number");
  }
  return value;
}

bool isNumber(const Lexer& lexer) {
  return !lexer.atEnd() && std::isdigit(static_cast<unsigned char>(lexer.token()[0])) != 0;
}

Term number(Lexer& lexer, bool negative) {
  const uint32_t line = lexer.line();
  const std::string token(lexer.take());
  const bool is_float = token.size() > 2 && token[0] == '0' && (token[1] | 32) == 'f';
  const bool is_double = token.size() > 2 && token[0] == '0' && (token[1] | 32) == 'd';
  Term term;
  term.kind = is_float    ? Term::Kind::kFloat32
              : is_double ? Term::Kind::kFloat64
                          : Term::Kind::kNumber;
  term.bits = integer(is_float || is_double ? "0x" + token.substr(2) : token, line);
  if (negative && (is_float || is_double)) complain(line, "a sign before the bits of a number");
  if (negative) term.bits = -term.bits;
  return term;
}

int64_t offset(Lexer& lexer) {
  if (!lexer.accept("+")) return 0;
  const bool negative = lexer.accept("-");
  return static_cast<int64_t>(number(lexer, negative).bits);
}

Term term(Lexer& lexer);

Term list(Lexer& lexer, std::string_view end) {
  Term all;
  all.kind = Term::Kind::kList;
  while (!lexer.accept(end)) {
    all.parts.push_back(term(lexer));
    if (!lexer.is(end)) lexer.expect(",");
  }
  return all;
}

Term simple(Lexer& lexer) {
  if (lexer.accept("{")) return list(lexer, "}");
  if (lexer.accept("(")) return list(lexer, ")");
  Term term;
  if (lexer.accept("[")) {
    term.kind = Term::Kind::kAddress;
    if (isNumber(lexer)) {
      term.offset = static_cast<int64_t>(number(lexer, false).bits);
    } else {
      term.name = lexer.take();
      term.offset = offset(lexer);
    }
    lexer.expect("]");
    return term;
  }
  if (lexer.accept("-")) return number(lexer, true);
  if (isNumber(lexer)) return number(lexer, false);
  if (lexer.atEnd() || !isWordStart(lexer.token()[0])) {
    complain(lexer.line(), "an operand expected, not '" + std::string(lexer.token()) + "'");
  }
  term.name = lexer.take();
  term.offset = offset(lexer);
  return term;
}

Term term(Lexer& lexer) {
  Term first = simple(lexer);
  if (!lexer.accept("|")) return first;
  Term both;
  both.kind = Term::Kind::kList;
  both.parts = {std::move(first), simple(lexer)};
  return both;
}

bool isSpace(std::string_view word) {
  return word == ".param" || word == ".shared" || word == ".local" || word == ".global" ||
         word == ".const";
}

/// A declaration from its space to before its end: `.shared .align 16 .b8 name[64]`.
Variable variable(Lexer& lexer) {
  Variable declared;
  declared.space = lexer.take().substr(1);
  uint32_t element = 0;
  while (lexer.token().starts_with(".")) {
    if (lexer.accept(".align")) {
      declared.align = static_cast<uint32_t>(integer(lexer.take(), lexer.line()));
    } else if (lexer.accept(".ptr") || isSpace(lexer.token())) {
      if (isSpace(lexer.token())) lexer.take(); // says what a pointer points to
    } else {
      element = typeBytes(lexer.take().substr(1));
    }
  }
  declared.name = lexer.take();
  declared.bytes = element;
  while (lexer.accept("[")) {
    declared.bytes *= lexer.is("]") ? 0 : integer(lexer.take(), lexer.line());
    lexer.expect("]");
  }
  if (declared.align == 1) declared.align = element;
  if (lexer.accept("=")) {
    const uint32_t line = lexer.line();
    const Term values = term(lexer);
    const auto put = [&](const Term& value) {
      if (value.kind == Term::Kind::kName) complain(line, "an address as an initial value");
      for (uint32_t i = 0; i < element; ++i) {
        declared.initial.push_back(static_cast<uint8_t>(value.bits >> (8 * i)));
      }
    };
    if (values.kind == Term::Kind::kList) {
      for (const Term& value : values.parts) put(value);
    } else {
      put(values);
    }
    declared.initial.resize(declared.bytes);
  }
  return declared;
}

std::vector<Variable> parameters(Lexer& lexer) {
  std::vector<Variable> all;
  if (!lexer.accept("(")) return all;
  while (!lexer.accept(")")) {
    all.push_back(variable(lexer));
    lexer.accept(",");
  }
  return all;
}

void labelOrStatement(Lexer& lexer, Item& item) {
  Statement& found = item.statement;
  found.line = lexer.line();
  if (lexer.accept("@")) {
    found.unless = lexer.accept("!");
    found.guard = lexer.take();
  }
  found.word = lexer.take();
  if (lexer.accept(":")) {
    item.kind = Item::Kind::kLabel;
    item.name = found.word;
    return;
  }
  while (!lexer.accept(";")) {
    found.terms.push_back(term(lexer));
    if (!lexer.is(";")) lexer.expect(",");
  }
}

void registers(Lexer& lexer, std::vector<Item>& items) {
  std::string type(lexer.take().substr(1));
  do {
    Item item;
    item.kind = Item::Kind::kRegisters;
    item.type = type;
    item.name = lexer.take();
    if (lexer.accept("<")) {
      item.count = static_cast<uint32_t>(integer(lexer.take(), lexer.line()));
      lexer.expect(">");
    }
    items.push_back(std::move(item));
  } while (lexer.accept(","));
  lexer.expect(";");
}

void pragma(Lexer& lexer, std::vector<Item>& items) {
  const std::string text(lexer.take());
  lexer.expect(";");
  constexpr std::string_view kUsed = "\"used_bytes_mask ";
  if (!text.starts_with(kUsed)) return;
  Item item;
  item.kind = Item::Kind::kUsedBytes;
  item.mask = integer(text.substr(kUsed.size(), text.size() - kUsed.size() - 1), lexer.line());
  items.push_back(std::move(item));
}

} // namespace

std::string textId(std::string_view text) { // FNV-1a
  uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(value));
  return name;
}

const char* kindName(Kind kind) {
  switch (kind) {
    case Kind::kSyntax:
      return "not understood";
    case Kind::kUnknown:
      return "unknown instruction";
    case Kind::kOutOfBounds:
      return "out of bounds";
    case Kind::kMisaligned:
      return "misaligned";
    case Kind::kUninitialised:
      return "uninitialised";
    case Kind::kRace:
      return "race";
    case Kind::kBarrier:
      return "barrier";
    case Kind::kParameter:
      return "write to a parameter";
    case Kind::kLimit:
      return "too many instructions";
  }
  return "?";
}

uint32_t typeBytes(std::string_view type) {
  if (type == "pred") return 0;
  if (type == "f16x2" || type == "bf16x2") return 4;
  const size_t digits = type.find_first_of("0123456789");
  if (digits == std::string_view::npos) {
    throw Violation(Kind::kSyntax, "'" + std::string(type) + "' is not a type");
  }
  return static_cast<uint32_t>(integer(type.substr(digits), 0) / 8);
}

std::vector<Item> Function::items() const {
  std::vector<Item> all;
  Lexer lexer(body, body_line);
  while (!lexer.atEnd()) {
    Item item;
    if (lexer.accept("{")) {
      item.kind = Item::Kind::kOpen;
    } else if (lexer.accept("}")) {
      item.kind = Item::Kind::kClose;
    } else if (lexer.accept(".reg")) {
      registers(lexer, all);
      continue;
    } else if (lexer.accept(".pragma")) {
      pragma(lexer, all);
      continue;
    } else if (isSpace(lexer.token())) {
      item.kind = Item::Kind::kVariable;
      item.variable = variable(lexer);
      lexer.expect(";");
    } else {
      labelOrStatement(lexer, item);
    }
    all.push_back(std::move(item));
  }
  return all;
}

Module::Module(std::string text) : text_(std::move(text)), id_(textId(text_)) {
  starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') starts_.push_back(i + 1);
  }
  Lexer lexer(text_, 1);
  while (!lexer.atEnd()) {
    if (lexer.accept(".version") || lexer.accept(".target") || lexer.accept(".address_size")) {
      do {
        lexer.take();
      } while (lexer.accept(","));
      continue;
    }
    while (lexer.accept(".visible") || lexer.accept(".extern") || lexer.accept(".weak")) {
    }
    if (isSpace(lexer.token())) {
      variables_.push_back(variable(lexer));
      lexer.expect(";");
      continue;
    }
    Function function;
    function.line = lexer.line();
    function.is_entry = lexer.is(".entry");
    if (!lexer.accept(".entry")) lexer.expect(".func");
    function.results = parameters(lexer);
    function.name = lexer.take();
    function.parameters = parameters(lexer);
    while (!lexer.is("{") && !lexer.is(";")) {
      if (lexer.atEnd()) complain(lexer.line(), "the function " + function.name + " has no end");
      if (lexer.accept(".maxntid")) {
        uint64_t threads = 1;
        do {
          threads *= integer(lexer.take(), lexer.line());
        } while (lexer.accept(","));
        function.max_threads = static_cast<uint32_t>(threads);
      } else {
        lexer.take(); // hints: .minnctapersm, .noreturn
      }
    }
    if (lexer.accept(";")) continue; // a declaration
    lexer.expect("{");
    function.body_line = lexer.line();
    function.body = lexer.skipBraces();
    functions_.emplace(function.name, function);
  }
}

std::string_view Module::line(uint32_t number) const {
  if (number == 0 || number > starts_.size()) return {};
  const size_t begin = starts_[number - 1];
  return std::string_view(text_).substr(begin, text_.find('\n', begin) - begin);
}

const Function* Module::find(const std::string& name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

} // namespace puone::ptx
