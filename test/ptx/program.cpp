// SPDX-License-Identifier: BSD-3-Clause
// From syntax to instructions: registers, variables, labels, calls.
#include "program.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "access.h"
#include "copies.h"
#include "operations.h"
#include "special.h"
#include "violation.h"

namespace puone::ptx {

uint32_t widthBytes(Width width) {
  constexpr uint32_t kBytes[] = {0, 2, 4, 8};
  return kBytes[static_cast<size_t>(width)];
}

namespace {

constexpr uint32_t kFirstShared = 1024; // below is the system's; address 0 is no variable's
constexpr uint32_t kSharedGap = 16;
constexpr uint32_t kMaxDepth = 32; // of calls

uint32_t roundUp(uint64_t n, uint32_t multiple) {
  return static_cast<uint32_t>((n + multiple - 1) / multiple * multiple);
}

Width widthOfType(const std::string& type) {
  switch (typeBytes(type)) {
    case 0:
      return Width::kPredicate;
    case 1:
    case 2:
      return Width::k16;
    case 4:
      return Width::k32;
    case 8:
      return Width::k64;
    default:
      throw Violation(Kind::kSyntax, "registers of type " + type);
  }
}

/// Where a variable is: an address in its space.
struct Place {
  Space space;
  uint64_t address;
  uint64_t bytes;
};

/// Names of a scope: between braces, or of a function.
struct Scope {
  std::unordered_map<std::string, Width> registers; // declared by name
  std::vector<std::pair<std::string, std::pair<uint32_t, Width>>> stems;
  std::unordered_map<std::string, Operand> used;
  std::unordered_map<std::string, Place> variables;
  uint32_t local_end = 0; // what is given back when the scope ends
};

class Decoder {
 public:
  Decoder(Program& program, const std::map<std::string, uint64_t>& globals)
      : program_(program), globals_(globals) {}

  void decodeEntry(const Function& entry) {
    scopes_.emplace_back();
    uint64_t end = 0;
    for (const Variable& parameter : entry.parameters) {
      const uint32_t at = roundUp(end, parameter.align);
      const auto bytes = static_cast<uint32_t>(parameter.bytes);
      scopes_.back().variables[parameter.name] = {Space::kParameter, at, bytes};
      program_.parameters.push_back({at, bytes});
      end = at + bytes;
    }
    program_.parameter_bytes = static_cast<uint32_t>(end);
    program_.max_threads = entry.max_threads;
    decodeBody(entry, 0);
    scopes_.pop_back();
    line_ = entry.line;
    Instruction& last = emit();
    last.flow = Flow::kExit;
  }

 private:
  // ---- bodies ----

  void decodeBody(const Function& function, uint32_t depth) {
    if (depth > kMaxDepth) throw Violation(Kind::kUnknown, "a recursive call");
    const size_t outermost = scopes_.size() - 1;
    std::unordered_map<std::string, uint32_t> labels;
    std::vector<std::pair<uint32_t, std::string>> jumps; // and where they go; "": the end
    uint64_t used = ~uint64_t{0};
    for (const Item& item : function.items()) {
      switch (item.kind) {
        case Item::Kind::kOpen:
          scopes_.emplace_back();
          scopes_.back().local_end = local_end_;
          break;
        case Item::Kind::kClose:
          local_end_ = scopes_.back().local_end;
          scopes_.pop_back();
          if (scopes_.size() <= outermost) throw Violation(Kind::kSyntax, "a brace too many");
          break;
        case Item::Kind::kRegisters:
          declareRegisters(item);
          break;
        case Item::Kind::kVariable:
          declare(item.variable);
          break;
        case Item::Kind::kUsedBytes:
          used = item.mask;
          break;
        case Item::Kind::kLabel:
          labels[item.name] = here();
          break;
        case Item::Kind::kStatement:
          line_ = item.statement.line;
          decode(item.statement, depth, jumps, std::exchange(used, ~uint64_t{0}));
          break;
      }
    }
    for (const auto& [at, label] : jumps) {
      const auto found = labels.find(label);
      if (!label.empty() && found == labels.end()) {
        throw Violation(Kind::kSyntax, "there is no label " + label);
      }
      program_.code[at].target = label.empty() ? here() : found->second;
    }
  }

  uint32_t here() const {
    return static_cast<uint32_t>(program_.code.size());
  }

  Instruction& emit() {
    Instruction& in = program_.code.emplace_back();
    in.line = line_;
    in.count = &program_.counts[line_];
    return in;
  }

  void declareRegisters(const Item& item) {
    Scope& scope = scopes_.back();
    const Width width = widthOfType(item.type);
    if (item.count > 0) {
      scope.stems.push_back({item.name, {item.count, width}});
    } else {
      scope.registers[item.name] = width;
    }
  }

  void declare(const Variable& variable) {
    const auto bytes = variable.bytes;
    if (variable.space == "shared") {
      scopes_.back().variables[variable.name] = placeShared(variable);
    } else if (variable.space == "local" || variable.space == "param") {
      const uint32_t at = roundUp(local_end_, std::max(variable.align, 1u));
      local_end_ = at + static_cast<uint32_t>(bytes);
      program_.local_bytes = std::max(program_.local_bytes, roundUp(local_end_, 16));
      scopes_.back().variables[variable.name] = {Space::kLocal, at, bytes};
    } else {
      throw Violation(Kind::kUnknown, "a variable of space " + variable.space);
    }
  }

  Place placeShared(const Variable& variable) {
    const uint32_t end = program_.shared.empty() ? kFirstShared : program_.shared.back().end;
    const uint32_t at = roundUp(end + kSharedGap, std::max(variable.align, 1u));
    program_.shared.push_back({variable.name, at, at + static_cast<uint32_t>(variable.bytes)});
    return {Space::kShared, at, variable.bytes};
  }

  // ---- names ----

  std::optional<Operand> findRegister(const std::string& name) {
    for (size_t i = scopes_.size(); i-- > function_;) {
      Scope& scope = scopes_[i];
      if (const auto used = scope.used.find(name); used != scope.used.end()) return used->second;
      if (const auto width = declaredIn(scope, name)) {
        return scope.used[name] = newRegister(*width);
      }
    }
    return std::nullopt;
  }

  static std::optional<Width> declaredIn(const Scope& scope, const std::string& name) {
    if (const auto found = scope.registers.find(name); found != scope.registers.end()) {
      return found->second;
    }
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    if (digits == name.size() || digits == 0) return std::nullopt;
    for (const auto& [stem, declared] : scope.stems) {
      if (name.compare(0, digits, stem) == 0 && digits == stem.size() &&
          std::stoul(name.substr(digits)) < declared.first) {
        return declared.second;
      }
    }
    return std::nullopt;
  }

  Operand newRegister(Width width) {
    Operand made;
    made.width = width;
    made.number = program_.registers++;
    made.offset = program_.register_bytes;
    program_.register_bytes += width == Width::kPredicate ? 8 : 32 * widthBytes(width);
    return made;
  }

  std::optional<Place> findVariable(const std::string& name) {
    for (size_t i = scopes_.size(); i-- > function_;) {
      const auto found = scopes_[i].variables.find(name);
      if (found != scopes_[i].variables.end()) return found->second;
    }
    if (const auto found = globals_.find(name); found != globals_.end()) {
      return Place{Space::kGlobal, found->second, 0};
    }
    for (const Variable& variable : program_.module.variables()) {
      if (variable.name == name && variable.space == "shared") {
        return scopes_.front().variables[name] = placeShared(variable);
      }
    }
    return std::nullopt;
  }

  Operand needRegister(const std::string& name) {
    const auto found = findRegister(name);
    if (!found) throw Violation(Kind::kSyntax, name + " is not declared");
    return *found;
  }

  /// The value in all lanes.
  Operand constant(uint64_t bits, Width width) {
    auto& known = constants_[{bits, width}];
    if (!known.constant) {
      known.constant = true;
      known.width = width;
      known.offset = static_cast<uint32_t>(program_.constants.size());
      const uint32_t bytes = widthBytes(width);
      if (width == Width::kPredicate) {
        program_.constants.resize(known.offset + 8, std::byte(bits != 0 ? 0xff : 0));
      } else {
        program_.constants.resize(known.offset + size_t{32} * bytes);
        for (uint32_t lane = 0; lane < 32; ++lane) {
          std::memcpy(&program_.constants[known.offset + lane * bytes], &bits, bytes);
        }
      }
    }
    return known;
  }

  /// An operand of a certain width; none: of any.
  Operand operand(const Term& term, std::optional<Width> width) {
    switch (term.kind) {
      case Term::Kind::kName: {
        if (term.offset == 0) {
          if (term.name == "_" && width) return newRegister(*width);
          if (const auto found = findRegister(term.name)) {
            if (width && found->width != *width) {
              throw Violation(Kind::kSyntax, "the width of " + term.name + " does not fit");
            }
            return *found;
          }
        }
        const auto place = findVariable(term.name);
        if (!place) throw Violation(Kind::kSyntax, term.name + " is not declared");
        return constant(
            addressOf(*place, term.name) + static_cast<uint64_t>(term.offset),
            width.value_or(Width::k64));
      }
      case Term::Kind::kNumber:
        return constant(term.bits, width.value_or(Width::k64));
      case Term::Kind::kFloat32:
        if (width && *width == Width::k64) {
          throw Violation(Kind::kSyntax, "a number of single precision in a register of 64 bits");
        }
        return constant(term.bits, Width::k32);
      case Term::Kind::kFloat64:
        if (width && *width != Width::k64) {
          throw Violation(Kind::kSyntax, "a number of double precision in a narrow register");
        }
        return constant(term.bits, Width::k64);
      default:
        throw Violation(Kind::kSyntax, "an address or a list where a value is expected");
    }
  }

  /// What mov makes of a variable's name. The parameters of a called function are local memory,
  /// and `ld.param` has to know.
  uint64_t addressOf(const Place& place, const std::string& name) const {
    const bool parameter = place.space == Space::kLocal && parameters_.contains(name);
    return parameter ? place.address | kLocalWindow : place.address;
  }

  // ---- statements ----

  using Jumps = std::vector<std::pair<uint32_t, std::string>>;

  void decode(const Statement& statement, uint32_t depth, Jumps& jumps, uint64_t used) {
    const std::string& word = statement.word;
    if (word == "call" || word == "call.uni") return call(statement, depth);
    Instruction in;
    in.line = line_;
    in.count = &program_.counts[line_];
    in.used = used;
    if (!statement.guard.empty()) {
      in.guarded = true;
      in.unless = statement.unless;
      in.guard = needRegister(statement.guard);
      if (in.guard.width != Width::kPredicate) {
        throw Violation(Kind::kSyntax, statement.guard + " is not a predicate");
      }
    }
    AccessName name;
    if (word == "bra" || word == "bra.uni") {
      in.flow = Flow::kBranch;
      jumps.emplace_back(here(), statement.terms.at(0).name);
    } else if (word == "ret" || word == "ret.uni" || word == "exit") {
      const bool returns = depth > 0 && word != "exit";
      in.flow = returns ? Flow::kBranch : Flow::kExit;
      if (returns) jumps.emplace_back(here(), "");
    } else if (decodeAccess(word, in, name)) {
      access(statement, name, in);
    } else if (decodeCopy(word, in)) {
      copy(statement, in);
    } else if (word.starts_with("mov.") && move(statement, in)) {
      // done
    } else {
      plain(statement, in);
    }
    program_.code.push_back(in);
  }

  static void push(Instruction& in, const Operand& operand) {
    if (in.operands == in.operand.size()) throw Violation(Kind::kSyntax, "too many operands");
    in.operand[in.operands++] = operand;
  }

  /// The mask of an exchange of a whole warp.
  Operand everyLane() {
    return constant(~0u, Width::k32);
  }

  /// Adds a term, or the parts of a list.
  static void append(const Term& term, std::vector<const Term*>& to) {
    if (term.kind != Term::Kind::kList) return to.push_back(&term);
    for (const Term& part : term.parts) to.push_back(&part);
  }

  static Width widthOfLetter(char letter) {
    return letter == 'p'   ? Width::kPredicate
           : letter == 'h' ? Width::k16
           : letter == 'w' ? Width::k32
                           : Width::k64;
  }

  void plain(const Statement& statement, Instruction& in) {
    const auto found = operations().find(statement.word);
    if (found == operations().end()) throw Violation(Kind::kUnknown, statement.word);
    const Operation& operation = found->second;
    in.run = operation.run;
    in.flow = operation.flow;
    in.option = operation.option;
    in.known = operation.known;
    const size_t colon = operation.widths.find(':');
    const bool together = operation.widths.back() == '*';
    std::vector<const Term*> dests, terms;
    for (const Term& term : statement.terms) {
      if (colon > 0 && &term == statement.terms.data()) {
        append(term, dests);
      } else if (together) {
        append(term, terms);
      } else {
        terms.push_back(&term);
      }
    }
    const bool fits = dests.size() <= colon && (dests.size() == colon || colon == 2) &&
                      terms.size() + together + colon + 1 == operation.widths.size();
    if (!fits) throw Violation(Kind::kSyntax, "the number of operands does not fit");
    const auto width = [&](size_t i) -> std::optional<Width> {
      const char letter = operation.widths[i];
      return letter == 'x' ? std::nullopt : std::optional(widthOfLetter(letter));
    };
    for (size_t i = 0; i < dests.size(); ++i) pushDest(in, *dests[i], width(i));
    for (size_t i = 0; i < terms.size(); ++i) push(in, operand(*terms[i], width(colon + 1 + i)));
    if (together) push(in, everyLane());
    if (in.flow == Flow::kBarrier && !in.source(0).constant) {
      throw Violation(Kind::kUnknown, "a barrier whose number is in a register");
    }
  }

  void pushDest(Instruction& in, const Term& term, std::optional<Width> width) {
    const Operand to = operand(term, width);
    if (to.constant) throw Violation(Kind::kSyntax, "a result that goes to no register");
    push(in, to);
    ++in.dests;
  }

  /// mov of a special register, and of and to lists; false: any other.
  bool move(const Statement& statement, Instruction& in) {
    if (statement.terms.size() != 2) return false;
    const Term& to = statement.terms[0];
    const Term& from = statement.terms[1];
    const Width width = widthOfType(statement.word.substr(4));
    if (to.kind == Term::Kind::kList || from.kind == Term::Kind::kList) {
      pieces(to, from, width, in);
      return true;
    }
    if (from.kind != Term::Kind::kName) return false;
    const Run special = specialRegister(from.name);
    if (special == nullptr) return false;
    in.run = special;
    pushDest(in, to, width);
    return true;
  }

  void pieces(const Term& to, const Term& from, Width width, Instruction& in) {
    const bool packs = from.kind == Term::Kind::kList;
    const Term& list = packs ? from : to;
    const size_t bytes = widthBytes(width) / std::max<size_t>(list.parts.size(), 1);
    const Width piece = bytes == 2 ? Width::k16 : Width::k32;
    if (bytes != 2 && bytes != 4) throw Violation(Kind::kUnknown, "pieces of this size");
    if (packs) {
      pushDest(in, to, width);
      for (const Term& part : list.parts) push(in, operand(part, piece));
    } else {
      for (const Term& part : list.parts) pushDest(in, part, piece);
      push(in, operand(from, width));
    }
    in.bytes = static_cast<uint8_t>(bytes);
    in.run = packs ? packPieces : unpackPieces;
  }

  void access(const Statement& statement, const AccessName& name, Instruction& in) {
    using Verb = AccessName::Verb;
    std::vector<const Term*> terms;
    for (const Term& term : statement.terms) terms.push_back(&term);
    const bool gives = name.verb == Verb::kLoad || name.verb == Verb::kAtomic;
    const size_t expected = (gives ? 1 : 0) + 1u +
                            (name.verb == Verb::kLoad    ? 0
                             : name.verb == Verb::kStore ? 1
                                                         : name.operands);
    if (terms.size() != expected) {
      throw Violation(Kind::kSyntax, "the number of operands does not fit");
    }
    const auto list = [](const Term& term) {
      std::vector<const Term*> all;
      append(term, all);
      return all;
    };
    const Width least = in.bytes <= 2 ? Width::k16 : in.bytes == 4 ? Width::k32 : Width::k64;
    const auto fitting = [&](const Term& term) {
      // Registers may be wider than the type.
      const bool number = term.kind == Term::Kind::kNumber || term.name == "_";
      const Operand found = operand(term, number ? std::optional(least) : std::nullopt);
      if (found.width < least) throw Violation(Kind::kSyntax, "a register that is too narrow");
      return found;
    };
    size_t next = 0;
    if (gives) {
      const auto dests = list(*terms[next++]);
      if (dests.size() != name.elements) throw Violation(Kind::kSyntax, "a vector of another size");
      for (const Term* dest : dests) {
        const Operand to = fitting(*dest);
        if (to.constant) throw Violation(Kind::kSyntax, "a result that goes to no register");
        push(in, to);
        ++in.dests;
      }
    }
    address(*terms[next++], in);
    if (name.verb == Verb::kStore) {
      const auto values = list(*terms[next]);
      if (values.size() != name.elements)
        throw Violation(Kind::kSyntax, "a vector of another size");
      for (const Term* value : values) push(in, fitting(*value));
    } else {
      while (next < terms.size()) push(in, fitting(*terms[next++]));
    }
    if (in.flow == Flow::kExchange) push(in, everyLane());
  }

  /// [to], [from], bytes{, how many of them are read}
  void copy(const Statement& statement, Instruction& in) {
    const auto& terms = statement.terms;
    if (terms.size() != 3 && terms.size() != 4) {
      throw Violation(Kind::kSyntax, "the number of operands does not fit");
    }
    const bool wide_alone = statement.word.starts_with("cp.async.cg.");
    const uint64_t bytes = terms[2].kind == Term::Kind::kNumber ? terms[2].bits : 0;
    if (bytes != 16 && (wide_alone || (bytes != 4 && bytes != 8))) {
      throw Violation(Kind::kSyntax, "a copy of another size");
    }
    in.bytes = static_cast<uint8_t>(bytes);
    in.space = Space::kGlobal;
    address(terms[1], in);
    in.option = static_cast<uint64_t>(in.offset);
    in.space = Space::kShared;
    address(terms[0], in);
    std::swap(in.operand[0], in.operand[1]);
    push(in, terms.size() == 4 ? operand(terms[3], Width::k32) : constant(bytes, Width::k32));
  }

  void address(const Term& term, Instruction& in) {
    if (term.kind != Term::Kind::kAddress) throw Violation(Kind::kSyntax, "an address is expected");
    in.offset = term.offset;
    if (term.name.empty()) return push(in, constant(0, Width::k64));
    if (const auto base = findRegister(term.name)) {
      if (base->width != Width::k64 && base->width != Width::k32) {
        throw Violation(Kind::kSyntax, "a narrow address");
      }
      return push(in, *base);
    }
    const auto place = findVariable(term.name);
    if (!place) throw Violation(Kind::kSyntax, term.name + " is not declared");
    if (in.space == Space::kParameter) in.space = place->space; // a function's: local memory
    if (in.space != place->space && in.space != Space::kGeneric) {
      throw Violation(Kind::kSyntax, term.name + " is in another space");
    }
    in.space = place->space;
    push(in, constant(place->address, Width::k64));
  }

  /// The callee's instructions, over the caller's variables for its parameters and results.
  void call(const Statement& statement, uint32_t depth) {
    if (!statement.guard.empty()) throw Violation(Kind::kUnknown, "a call with a predicate");
    std::vector<const Term*> terms;
    for (const Term& term : statement.terms) terms.push_back(&term);
    std::vector<Term> results, arguments;
    if (!terms.empty() && terms[0]->kind == Term::Kind::kList) {
      results = terms[0]->parts;
      terms.erase(terms.begin());
    }
    if (terms.empty() || terms.size() > 2) throw Violation(Kind::kSyntax, "a call of this form");
    if (terms.size() == 2) arguments = terms[1]->parts;
    const Function* callee = program_.module.find(terms[0]->name);
    if (callee == nullptr) {
      throw Violation(Kind::kUnknown, "a call of " + terms[0]->name + ", which is not here");
    }
    Scope scope;
    bind(callee->results, results, scope);
    bind(callee->parameters, arguments, scope);
    const uint32_t line = line_;
    const size_t function = std::exchange(function_, scopes_.size());
    scope.local_end = local_end_;
    scopes_.push_back(std::move(scope));
    decodeBody(*callee, depth + 1);
    local_end_ = scopes_.back().local_end;
    scopes_.pop_back();
    function_ = function;
    line_ = line;
  }

  void bind(const std::vector<Variable>& formal, const std::vector<Term>& actual, Scope& scope) {
    if (formal.size() != actual.size()) throw Violation(Kind::kSyntax, "a call of another form");
    for (size_t i = 0; i < formal.size(); ++i) {
      const auto place = findVariable(actual[i].name);
      if (!place || place->space != Space::kLocal || place->bytes != formal[i].bytes) {
        throw Violation(Kind::kSyntax, actual[i].name + " does not fit " + formal[i].name);
      }
      scope.variables[formal[i].name] = *place;
      parameters_.emplace(formal[i].name, true);
    }
  }

  Program& program_;
  const std::map<std::string, uint64_t>& globals_;
  std::vector<Scope> scopes_;
  size_t function_ = 0; // the first scope of the function
  uint32_t line_ = 0;
  uint32_t local_end_ = 0;
  std::map<std::pair<uint64_t, Width>, Operand> constants_;
  std::unordered_map<std::string, bool> parameters_; // of functions
};

} // namespace

Program::Program(
    const Module& from,
    const std::string& entry,
    const std::map<std::string, uint64_t>& globals,
    uint64_t* counted)
    : module(from), name(entry), counts(counted) {
  const Function* const function = module.find(entry);
  if (function == nullptr || !function->is_entry) {
    throw Violation(Kind::kSyntax, "the module has no entry " + entry);
  }
  Decoder decoder(*this, globals);
  decoder.decodeEntry(*function);
}

} // namespace puone::ptx
