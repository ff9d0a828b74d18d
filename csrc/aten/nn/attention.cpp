// SPDX-License-Identifier: BSD-3-Clause
// Scaled dot product attention. PyTorch asks which form of it to take: the fused one, which runs
// here as the "overrideable" operator, or its own composite of other operators ("math"), for what
// the kernels do not compute.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/empty_like_ops.h>
#include <ATen/ops/stack_ops.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "aten/core/launch.h"
#include "aten/core/operands.h"
#include "aten/core/output.h"
#include "aten/nn/attention_ops.h"
#include "aten/random/random.h"
#include "kernels/args/attention.h"
#include "runtime/generator.h"
#include "runtime/stream.h"

namespace puone {
namespace {

using at::Tensor;
using c10::ScalarType;
using c10::SymInt;
using sdp::sdp_params;
using sdp::SDPBackend;

// ---- the choice --------------------------------------------------------------------------------

// With `debug` each of these says why it refuses, as PyTorch's own checks do.

bool hasAttentionKernels(const sdp_params& params, bool debug) {
  const auto type = kernelDtype(params.query.scalar_type());
  const bool known =
      type && kernel::attention.supports(*type) &&
      (!sdp::input_requires_grad(params) || kernel::attention_backward.supports(*type));
  if (!known && debug) {
    TORCH_WARN("The driver has no attention kernel for ", params.query.scalar_type(), ".");
  }
  return known;
}

bool fitsHeads(const sdp_params& params, bool debug) {
  const SymInt most(PUONE_ATTENTION_MAX_SIZE);
  const SymInt size = params.query.sym_size(-1);
  const bool fits =
      size == params.key.sym_size(-1) && size <= most && params.value.sym_size(-1) <= most;
  if (!fits && debug) {
    TORCH_WARN(
        "The attention kernels take heads of at most ",
        PUONE_ATTENTION_MAX_SIZE,
        " columns, as many of query as of key. Got Query.sizes(): ",
        params.query.sym_sizes(),
        ", Key.sizes(): ",
        params.key.sym_sizes(),
        ", Value.sizes(): ",
        params.value.sym_sizes(),
        " instead.");
  }
  return fits;
}

bool fitsKeys(const sdp_params& params, bool debug) {
  const bool fits = params.key.sym_size(-2) == params.value.sym_size(-2);
  if (!fits && debug) TORCH_WARN("Key and value must have the same length.");
  return fits;
}

// Where both are given, the composite form raises PyTorch's error.
bool hasOneMask(const sdp_params& params, bool debug) {
  const bool both = params.is_causal && params.attn_mask.has_value();
  if (both && debug) TORCH_WARN("Explicit attn_mask should not be set when is_causal=True.");
  return !both;
}

bool hasPlainMask(const sdp_params& params, bool debug) {
  const bool differentiated = params.attn_mask.has_value() && params.attn_mask->requires_grad();
  if (differentiated && debug) {
    TORCH_WARN("The attention kernels have no gradient of attn_mask.");
  }
  return !differentiated;
}

bool isFusable(const sdp_params& params, bool debug) {
  constexpr std::array<bool (*)(const sdp_params&, bool), 9> kChecks{
      sdp::check_nested_tensor,
      sdp::check_tensor_shapes,
      sdp::check_batch_size_and_num_heads_dense<true /*supports_gqa*/>,
      hasPlainMask,
      sdp::check_attn_mask_shape,
      fitsHeads,
      fitsKeys,
      hasOneMask,
      hasAttentionKernels};
  return std::all_of(
      kChecks.begin(), kChecks.end(), [&](auto check) { return check(params, debug); });
}

SDPBackend attentionChoice(const sdp_params& params) {
  const auto& context = at::globalContext();
  if (context.userEnabledOverrideableSDP() && isFusable(params, false)) {
    return SDPBackend::overrideable;
  }
  if (context.userEnabledMathSDP()) return SDPBackend::math;
  if (context.userEnabledOverrideableSDP()) {
    TORCH_WARN("Overrideable attention kernel not used because:");
    isFusable(params, true);
  } else {
    TORCH_WARN(
        "This device has no flash, memory efficient or cuDNN attention kernel. Its own one is "
        "SDPBackend.OVERRIDEABLE, and SDPBackend.MATH runs as other operators.");
  }
  TORCH_CHECK(false, "No available kernel. Aborting execution.");
}

int64_t fusedSdpChoice(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const std::optional<Tensor>& attn_mask,
    double dropout_p,
    bool is_causal,
    std::optional<double> /*scale*/,
    bool enable_gqa) {
  return static_cast<int64_t>(
      attentionChoice({query, key, value, attn_mask, dropout_p, is_causal, enable_gqa}));
}

// ---- the operators -----------------------------------------------------------------------------

// A tensor whose rows a kernel can read.
Tensor withDenseRows(const Tensor& tensor) {
  return tensor.size(-1) <= 1 || tensor.stride(-1) == 1 ? tensor : tensor.contiguous();
}

// The strides of all dimensions but the columns.
template <size_t n>
void setRowStrides(int64_t (&strides)[n], const Tensor& tensor) {
  for (size_t d = 0; d < n; ++d) {
    strides[d] = tensor.stride(static_cast<int64_t>(d)) * static_cast<int64_t>(tensor.itemsize());
  }
}

// A result in the order of the dimensions that `like` has, with another size of the last one: what
// PyTorch's meta function of the operator promises.
Tensor emptyInLayoutOf(const Tensor& like, int64_t last_size) {
  if (like.size(-1) == last_size) return at::_ops::empty_like::call(like, {}, {}, {}, {}, {});
  std::array<int64_t, 4> inner_first{0, 1, 2, 3}, sizes{}, strides{};
  const auto stride = [&](int64_t d) {
    return like.stride(d) == 0 ? std::numeric_limits<int64_t>::max() : like.stride(d);
  };
  std::stable_sort(inner_first.begin(), inner_first.end(), [&](int64_t a, int64_t b) {
    return stride(a) < stride(b);
  });
  std::copy(like.sizes().begin(), like.sizes().end(), sizes.begin());
  sizes[3] = last_size;
  int64_t step = 1;
  for (const int64_t d : inner_first) {
    strides[d] = step;
    step *= sizes[d];
  }
  return newResult(sizes, strides, like.options());
}

// A result that a kernel writes row by row: the tensor itself, or a temporary one.
class RowsOutput {
 public:
  // `type`: what the kernel writes; a result of another type is cast.
  RowsOutput(const Tensor& wanted, ScalarType type)
      : wanted_(wanted),
        written_(
            wanted.scalar_type() == type && (wanted.size(-1) <= 1 || wanted.stride(-1) == 1)
                ? wanted
                : newResult(wanted.sizes(), {}, wanted.options().dtype(type))) {}

  template <size_t n>
  void* describe(int64_t (&strides)[n]) const {
    setRowStrides(strides, written_);
    return outputData(written_);
  }

  void copyBack() const {
    if (!written_.is_same(wanted_)) wanted_.copy_(written_);
  }

 private:
  Tensor wanted_, written_;
};

// What both passes are given. It keeps tensors alive until the launch.
struct AttentionInputs {
  AttentionInputs(
      const Tensor& query,
      const Tensor& key,
      const Tensor& value,
      const std::optional<Tensor>& attn_bias,
      double dropout_p,
      bool is_causal,
      std::optional<double> scale)
      : query(withDenseRows(query)), key(withDenseRows(key)), value(withDenseRows(value)) {
    args.dtype = *kernelDtype(query.scalar_type());
    args.causal = is_causal;
    args.batch = query.size(0);
    args.heads = query.size(1);
    args.key_heads = key.size(1);
    args.queries = query.size(2);
    args.keys = key.size(2);
    args.head_size = query.size(3);
    args.value_size = value.size(3);
    args.scale = scale ? *scale : 1 / std::sqrt(static_cast<double>(args.head_size));
    args.dropout = dropout_p;
    args.query = inputData(this->query);
    args.key = inputData(this->key);
    args.value = inputData(this->value);
    setRowStrides(args.query_strides, this->query);
    setRowStrides(args.key_strides, this->key);
    setRowStrides(args.value_strides, this->value);
    if (!attn_bias || !attn_bias->defined()) return;
    const ScalarType type = attn_bias->scalar_type();
    TORCH_CHECK(
        type == ScalarType::Bool || type == ScalarType::Float || type == query.scalar_type(),
        "puone: attn_bias must be bool, float32 or of the type of query, ",
        query.scalar_type(),
        ", but is ",
        type);
    TORCH_CHECK(
        attn_bias->device() == query.device(),
        "Expected all tensors to be on the same device, but query is on ",
        query.device(),
        " and attn_bias on ",
        attn_bias->device());
    bias = attn_bias->expand({args.batch, args.heads, args.queries, args.keys});
    args.mask_dtype = *kernelDtype(type);
    args.mask = inputData(bias);
    setRowStrides(args.mask_strides, bias);
  }

  ScalarType computed() const {
    return query.scalar_type() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  }

  puone_attention_args args{};
  Tensor query, key, value, bias;
};

void checkAttention(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p) {
  const ScalarType type = query.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      c10::isFloatingType(type) && kernelDtype(type),
      "puone: attention is not implemented for '",
      type,
      "'");
  TORCH_CHECK(
      key.scalar_type() == type && value.scalar_type() == type,
      "puone: attention expects query, key and value of one type, but got ",
      type,
      ", ",
      key.scalar_type(),
      " and ",
      value.scalar_type());
  const auto heads = [](const Tensor& t) { return t.dim() == 4 ? t.size(1) : 0; };
  TORCH_CHECK(
      query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && key.size(0) == query.size(0) &&
          value.size(0) == query.size(0) && heads(value) == heads(key) &&
          (heads(key) == 0 ? heads(query) == 0 : heads(query) % heads(key) == 0) &&
          value.size(2) == key.size(2) && key.size(3) == query.size(3) &&
          query.size(3) <= PUONE_ATTENTION_MAX_SIZE && value.size(3) <= PUONE_ATTENTION_MAX_SIZE,
      "puone: attention expects a query of [batch, heads, length, size], and key and value of "
      "[batch, heads or a divisor of it, other length, size], with sizes of at most ",
      PUONE_ATTENTION_MAX_SIZE,
      ", but got ",
      query.sizes(),
      ", ",
      key.sizes(),
      " and ",
      value.sizes());
  TORCH_CHECK(
      dropout_p >= 0 && dropout_p <= 1,
      "dropout probability has to be between 0 and 1, but got ",
      dropout_p);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, SymInt, SymInt, Tensor, Tensor, Tensor> fusedAttention(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const std::optional<Tensor>& attn_bias,
    double dropout_p,
    bool is_causal,
    bool /*return_debug_mask*/,
    std::optional<double> scale) {
  checkAttention(query, key, value, dropout_p);
  AttentionInputs inputs(query, key, value, attn_bias, dropout_p, is_causal, scale);
  puone_attention_args& args = inputs.args;
  const Tensor out = emptyInLayoutOf(query, args.value_size);
  const auto options = query.options();
  const Tensor logsumexp =
      newResult({args.batch, args.heads, args.queries}, {}, options.dtype(inputs.computed()));
  const Tensor seed = newResult({}, {}, options.dtype(ScalarType::Long));
  const Tensor offset = newResult({}, {}, options.dtype(ScalarType::Long));
  if (args.keys == 0) {
    out.zero_();
    logsumexp.fill_(-std::numeric_limits<double>::infinity());
  } else if (logsumexp.numel() > 0) {
    const c10::DeviceIndex device = query.device().index();
    const Stream stream = getCurrentStream(device);
    requireType(kernel::attention, query.scalar_type());
    if (dropout_p > 0) {
      auto* const generator = generatorOrDefault(std::nullopt, device).get<GeneratorImpl>();
      setPosition(args, generator->draw(4, stream));
    }
    args.drawn[0] = outputData(seed);
    args.drawn[1] = outputData(offset);
    const RowsOutput rows(out, out.scalar_type());
    args.out = rows.describe(args.out_strides);
    args.logsumexp = outputData(logsumexp);
    launchKernel(kernel::attention, args, stream);
    rows.copyBack();
  }
  return {
      out,
      logsumexp,
      Tensor(),
      Tensor(),
      SymInt(args.queries),
      SymInt(args.keys),
      seed,
      offset,
      Tensor()};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> fusedAttentionBackward(
    const Tensor& grad_out,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const Tensor& attn_bias,
    std::array<bool, 4> grad_input_mask,
    const Tensor& out,
    const Tensor& logsumexp,
    const Tensor& /*cum_seq_q*/,
    const Tensor& /*cum_seq_k*/,
    SymInt /*max_q*/,
    SymInt /*max_k*/,
    double dropout_p,
    bool is_causal,
    const Tensor& philox_seed,
    const Tensor& philox_offset,
    std::optional<double> scale) {
  if (!grad_out.defined()) return {};
  TORCH_CHECK_NOT_IMPLEMENTED(
      !grad_input_mask[3], "puone: attention has no gradient of attn_bias; SDPBackend.MATH has");
  checkAttention(query, key, value, dropout_p);
  AttentionInputs inputs(query, key, value, attn_bias, dropout_p, is_causal, scale);
  puone_attention_args& args = inputs.args;
  const auto like = [](const Tensor& tensor) {
    return at::_ops::empty_like::call(tensor, {}, {}, {}, {}, {});
  };
  const Tensor grad_query = like(query), grad_key = like(key), grad_value = like(value);
  if (args.keys == 0 || logsumexp.numel() == 0) {
    grad_query.zero_();
    grad_key.zero_();
    grad_value.zero_();
    return {grad_query, grad_key, grad_value, Tensor()};
  }
  const Tensor grad_rows = withDenseRows(grad_out), out_rows = withDenseRows(out);
  args.out = inputData(out_rows);
  args.grad_out = inputData(grad_rows);
  setRowStrides(args.out_strides, out_rows);
  setRowStrides(args.grad_out_strides, grad_rows);
  args.logsumexp = inputData(logsumexp);
  args.drawn[0] = inputData(philox_seed);
  args.drawn[1] = inputData(philox_offset);
  const RowsOutput of_query(grad_query, inputs.computed());
  const RowsOutput of_key(grad_key, key.scalar_type());
  const RowsOutput of_value(grad_value, value.scalar_type());
  args.grad_query = of_query.describe(args.grad_query_strides);
  args.grad_key = of_key.describe(args.grad_key_strides);
  args.grad_value = of_value.describe(args.grad_value_strides);
  launchKernel(kernel::attention_backward, args, getCurrentStream(query.device().index()));
  of_query.copyBack();
  of_key.copyBack();
  of_value.copyBack();
  return {grad_query, grad_key, grad_value, Tensor()};
}

// ---- the derivative of the backward pass -------------------------------------------------------

// What dropout multiplied each weight by: attention to equal keys, of which the values are the rows
// of an identity matrix, some columns at a time.
Tensor dropoutFactors(
    const AttentionInputs& inputs, const Tensor& philox_seed, const Tensor& philox_offset) {
  const puone_attention_args& of = inputs.args;
  const auto options = inputs.query.options().dtype(ScalarType::Float);
  const std::array<Tensor, 2> position{philox_seed, philox_offset};
  const Tensor state = at::_ops::stack::call(position, 0);
  const Tensor zero = newResult({1, 1, 1, 1}, {}, options).zero_();
  const Tensor identity = newResult({of.keys, of.keys}, {}, options).zero_();
  identity.diagonal().fill_(static_cast<double>(of.keys));
  const Tensor factors = newResult({of.batch, of.heads, of.queries, of.keys}, {}, options);
  for (int64_t first = 0; first < of.keys; first += PUONE_ATTENTION_MAX_SIZE) {
    const int64_t columns = std::min<int64_t>(PUONE_ATTENTION_MAX_SIZE, of.keys - first);
    const Tensor values =
        identity.narrow(1, first, columns).contiguous().expand({of.batch, 1, of.keys, columns});
    AttentionInputs equal(
        zero.expand({of.batch, of.heads, of.queries, 1}),
        zero.expand({of.batch, 1, of.keys, 1}),
        values,
        std::nullopt,
        of.dropout,
        false,
        1.0);
    const Tensor logsumexp = newResult({of.batch, of.heads, of.queries}, {}, options);
    const Tensor drawn = newResult({2}, {}, state.options());
    puone_attention_args& args = equal.args;
    args.state = inputData(state);
    args.drawn[0] = outputData(drawn);
    args.drawn[1] = static_cast<int64_t*>(args.drawn[0]) + 1;
    args.logsumexp = outputData(logsumexp);
    const Tensor out = factors.narrow(3, first, columns);
    args.out = outputData(out);
    setRowStrides(args.out_strides, out);
    launchKernel(kernel::attention, args, getCurrentStream(inputs.query.device().index()));
  }
  return factors.to(inputs.query.scalar_type());
}

// The backward pass as operators that have derivatives. It holds the matrix of scores.
std::tuple<Tensor, Tensor, Tensor, Tensor> differentiableBackward(
    const Tensor& grad_out,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const AttentionInputs& inputs,
    const Tensor& logsumexp,
    const Tensor& philox_seed,
    const Tensor& philox_offset) {
  Tensor factors;
  const puone_attention_args& args = inputs.args;
  if (args.dropout > 0) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    factors = dropoutFactors(inputs, philox_seed, philox_offset);
  }
  const auto dropped = [&](const Tensor& weights) {
    return factors.defined() ? weights.mul(factors) : weights;
  };
  const int64_t group = args.heads / args.key_heads;
  const auto of_heads = [&](const Tensor& of_keys) {
    return group == 1 ? of_keys : of_keys.repeat_interleave(group, 1);
  };
  const auto of_keys = [&](const Tensor& of_heads) {
    return group == 1 ? of_heads : of_heads.unflatten(1, {args.key_heads, group}).sum(2);
  };
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  const Tensor keys = of_heads(key), values = of_heads(value);
  Tensor scores = query.matmul(keys.mT()).mul(args.scale);
  if (inputs.bias.defined()) {
    scores = inputs.bias.scalar_type() == ScalarType::Bool
                 ? scores.masked_fill(inputs.bias.logical_not(), kNothing)
                 : scores.add(inputs.bias);
  }
  if (args.causal != 0) {
    const Tensor seen = query.new_ones({args.queries, args.keys}, ScalarType::Bool).tril();
    scores = scores.masked_fill(seen.logical_not(), kNothing);
  }
  const Tensor empty = logsumexp.isneginf().unsqueeze(-1);
  const Tensor weights = scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0);
  const Tensor grad_weights = dropped(grad_out.matmul(values.mT()));
  const Tensor mean = grad_weights.mul(weights).sum(-1, true);
  const Tensor grad_scores = weights.mul(grad_weights.sub(mean)).mul(args.scale);
  return {
      grad_scores.matmul(keys),
      of_keys(grad_scores.mT().matmul(query)),
      of_keys(dropped(weights).mT().matmul(grad_out)),
      Tensor()};
}

// With autograd: PyTorch has no derivative of the backward pass of any fused attention.
std::tuple<Tensor, Tensor, Tensor, Tensor> fusedAttentionBackwardWithAutograd(
    const Tensor& grad_out,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const Tensor& attn_bias,
    std::array<bool, 4> grad_input_mask,
    const Tensor& out,
    const Tensor& logsumexp,
    const Tensor& cum_seq_q,
    const Tensor& cum_seq_k,
    SymInt max_q,
    SymInt max_k,
    double dropout_p,
    bool is_causal,
    const Tensor& philox_seed,
    const Tensor& philox_offset,
    std::optional<double> scale) {
  const std::array<const Tensor*, 4> inputs{&grad_out, &query, &key, &value};
  const bool again = at::GradMode::is_enabled() && !grad_input_mask[3] && key.sym_size(2) != 0 &&
                     std::any_of(inputs.begin(), inputs.end(), [](const Tensor* tensor) {
                       return tensor->defined() && tensor->requires_grad();
                     });
  if (again) {
    return differentiableBackward(
        grad_out,
        query,
        key,
        value,
        {query, key, value, attn_bias, dropout_p, is_causal, scale},
        logsumexp,
        philox_seed,
        philox_offset);
  }
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  return at::_ops::_scaled_dot_product_fused_attention_overrideable_backward::call(
      grad_out,
      query,
      key,
      value,
      attn_bias,
      grad_input_mask,
      out,
      logsumexp,
      cum_seq_q,
      cum_seq_k,
      std::move(max_q),
      std::move(max_k),
      dropout_p,
      is_causal,
      philox_seed,
      philox_offset,
      scale);
}

} // namespace
} // namespace puone

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &puone::fusedSdpChoice)
} // namespace at::native

#include "aten/nn/attention_registrations.inc"
