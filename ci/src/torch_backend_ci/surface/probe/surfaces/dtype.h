// SPDX-License-Identifier: BSD-3-Clause
// Element types: tables sized by their number, and what is asked about them.
#pragma once

#include "version.h"

#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/OpMathType.h>
#include <c10/core/ScalarType.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <array>

namespace probe {
namespace {

// A vendor's table: one row for each element type, with a guard against one more of them.
constexpr size_t kScalarTypes =
#if PROBE_TORCH(2, 14)
    48
#elif PROBE_TORCH(2, 8)
    47
#elif PROBE_TORCH(2, 7)
    46
#elif PROBE_TORCH(2, 6)
    45
#else
    38
#endif
    ;
constexpr std::array<int, kScalarTypes> kVendorTypes{};
static_assert(
    kVendorTypes.size() == static_cast<size_t>(c10::ScalarType::NumOptions),
    "a row of the table is missing");
static_assert(
    static_cast<size_t>(c10::NumScalarTypes) == static_cast<size_t>(c10::ScalarType::NumOptions));

int vendorType(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Byte:
    case c10::ScalarType::Char:
    case c10::ScalarType::Short:
    case c10::ScalarType::Int:
    case c10::ScalarType::Long:
    case c10::ScalarType::Half:
    case c10::ScalarType::Float:
    case c10::ScalarType::Double:
    case c10::ScalarType::ComplexHalf:
    case c10::ScalarType::ComplexFloat:
    case c10::ScalarType::ComplexDouble:
    case c10::ScalarType::Bool:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::QInt8:
    case c10::ScalarType::QUInt8:
    case c10::ScalarType::QInt32:
    case c10::ScalarType::Float8_e5m2:
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2fnuz:
    case c10::ScalarType::Float8_e4m3fnuz:
    case c10::ScalarType::UInt16:
    case c10::ScalarType::UInt32:
    case c10::ScalarType::UInt64:
    case c10::ScalarType::Undefined:
      return kVendorTypes[static_cast<size_t>(type)];
    default:
      return -1;
  }
}

void useTypes(c10::ScalarType type) {
  (void)vendorType(c10::promoteTypes(type, c10::kFloat));
  (void)c10::toString(type);
  (void)c10::elementSize(type);
  (void)c10::isIntegralType(type, true);
  (void)c10::isFloatingType(type);
  (void)c10::isReducedFloatingType(type);
  (void)c10::isComplexType(type);
  (void)c10::isQIntType(type);
  (void)c10::isBitsType(type);
  (void)c10::isFloat8Type(type);
  (void)c10::isBarebonesUnsignedType(type);
  (void)c10::isSignedType(type);
  (void)c10::canCast(type, c10::kDouble);
  (void)c10::toQIntType(type);
  (void)c10::toUnderlying(type);
  (void)c10::toRealValueType(type);
  (void)c10::toComplexType(type);
  (void)c10::typeMetaToScalarType(c10::scalarTypeToTypeMeta(type));
  (void)at::toOpMathType(type);
  (void)at::toAccumulateType(type, c10::DeviceType::PrivateUse1);
  static_assert(c10::CppTypeToScalarType<float>::value == c10::ScalarType::Float);
  static_assert(std::is_same_v<at::opmath_type<c10::Half>, float>);
  static_assert(std::is_same_v<at::acc_type<float, false>, double>);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, type, "probe", [] { (void)sizeof(scalar_t); });
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(
      at::kHalf, at::kBFloat16, at::kBool, type, "probe", [] { (void)sizeof(scalar_t); });
  AT_DISPATCH_INDEX_TYPES(type, "probe", [] { (void)sizeof(index_t); });
  AT_DISPATCH_V2(
      type,
      "probe",
      AT_WRAP([] { (void)sizeof(scalar_t); }),
      AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX),
      at::kHalf);
}

#define PROBE_NAME_OF(type, name) \
  case c10::ScalarType::name:     \
    return #name;
const char* nameOf(c10::ScalarType type) {
  switch (type) {
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX_AND_QINTS(PROBE_NAME_OF)
    default:
      return "";
  }
}
#undef PROBE_NAME_OF

} // namespace
} // namespace probe
