// SPDX-License-Identifier: BSD-3-Clause
// Comparisons (PTX ISA 9.7.6).
#include "floats.h"
#include "operations.h"

namespace puone::ptx {
namespace {

template <class T, class Compare>
void addComparison(Operations& table, const std::string& suffix) {
  table["setp." + suffix] = lanewise<[](T a, T b) -> bool { return Compare{}(a, b); }>();
}

struct Eq {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Ne {
  template <class T>
  bool operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a < b || a > b; // both are numbers
    return a != b;
  }
};
struct Lt {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Le {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Ge {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Nan {
  template <class T>
  bool operator()(T a, T b) const {
    return a != a || b != b;
  }
};
struct Num {
  template <class T>
  bool operator()(T a, T b) const {
    return a == a && b == b;
  }
};
/// True also of what is not a number.
template <class Compare>
struct Unordered {
  template <class T>
  bool operator()(T a, T b) const {
    return Nan{}(a, b) || Compare{}(a, b);
  }
};
/// Of numbers that count as zero where they are subnormal.
template <class Compare>
struct Flushing {
  template <class T>
  bool operator()(T a, T b) const {
    return Compare{}(flushed(a), flushed(b));
  }
};

template <class T>
void addOrders(Operations& table, const std::string& type) {
  addComparison<T, Eq>(table, "eq." + type);
  addComparison<T, Ne>(table, "ne." + type);
  addComparison<T, Lt>(table, "lt." + type);
  addComparison<T, Le>(table, "le." + type);
  addComparison<T, Gt>(table, "gt." + type);
  addComparison<T, Ge>(table, "ge." + type);
}

template <class T, template <class> class Of>
void addFloat(Operations& table, const std::string& type) {
  addComparison<T, Of<Eq>>(table, "eq." + type);
  addComparison<T, Of<Ne>>(table, "ne." + type);
  addComparison<T, Of<Lt>>(table, "lt." + type);
  addComparison<T, Of<Le>>(table, "le." + type);
  addComparison<T, Of<Gt>>(table, "gt." + type);
  addComparison<T, Of<Ge>>(table, "ge." + type);
  addComparison<T, Of<Unordered<Eq>>>(table, "equ." + type);
  addComparison<T, Of<Unordered<Ne>>>(table, "neu." + type);
  addComparison<T, Of<Unordered<Lt>>>(table, "ltu." + type);
  addComparison<T, Of<Unordered<Le>>>(table, "leu." + type);
  addComparison<T, Of<Unordered<Gt>>>(table, "gtu." + type);
  addComparison<T, Of<Unordered<Ge>>>(table, "geu." + type);
  addComparison<T, Of<Nan>>(table, "nan." + type);
  addComparison<T, Of<Num>>(table, "num." + type);
}

template <class Compare>
using Plain = Compare;

template <class T>
void addUnsigned(Operations& table, const std::string& bits) {
  addOrders<T>(table, "u" + bits);
  addComparison<T, Lt>(table, "lo.u" + bits);
  addComparison<T, Le>(table, "ls.u" + bits);
  addComparison<T, Gt>(table, "hi.u" + bits);
  addComparison<T, Ge>(table, "hs.u" + bits);
  addComparison<T, Eq>(table, "eq.b" + bits);
  addComparison<T, Ne>(table, "ne.b" + bits);
}

} // namespace

void addComparisons(Operations& table) {
  addOrders<int16_t>(table, "s16");
  addOrders<int32_t>(table, "s32");
  addOrders<int64_t>(table, "s64");
  addUnsigned<uint16_t>(table, "16");
  addUnsigned<uint32_t>(table, "32");
  addUnsigned<uint64_t>(table, "64");
  addFloat<float, Plain>(table, "f32");
  addFloat<double, Plain>(table, "f64");
  addFloat<float, Flushing>(table, "ftz.f32");
}

} // namespace puone::ptx
