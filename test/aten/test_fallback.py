# SPDX-License-Identifier: BSD-3-Clause
"""The CPU fallback, driven through operators made for the purpose and through torch's own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import torch_puone as puone

Operators = Any  # torch.ops.puone_test


@pytest.fixture(scope="module")
def ops() -> Iterator[Operators]:
    """Operators with every kind of argument the fallback has to carry, each with a CPU kernel."""
    library = torch.library.Library("puone_test", "DEF")

    def define(schema: str, kernel: Any, *tags: torch.Tag) -> None:
        name = library.define(schema, tags=tags)
        library.impl(name.split("::")[-1] if "::" in name else name, kernel, "CPU")

    def total(xs: list[torch.Tensor | None]) -> torch.Tensor:
        return torch.stack([torch.zeros(()) if x is None else x.sum() for x in xs]).sum()

    def bump(xs: list[torch.Tensor], y: torch.Tensor | None = None) -> None:
        for x in xs:
            x.add_(1)
        if y is not None:
            y.mul_(2)

    def grow(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        out.resize_(x.numel() + 1)
        out[:-1] = x.flatten()
        out[-1] = -1
        return out

    def halves(x: torch.Tensor) -> list[torch.Tensor]:
        return [x[: len(x) // 2].clone(), x[len(x) // 2 :].clone()]

    def fresh(n: int, device: torch.device | None) -> torch.Tensor:
        assert device == torch.device("cpu")
        return torch.arange(float(n), device=device)

    def draw(x: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
        assert generator is not None
        return torch.rand(x.shape, dtype=x.dtype, generator=generator)

    define("total(Tensor?[] xs) -> Tensor", total)
    define("bump(Tensor(a!)[] xs, Tensor(b!)? y=None) -> ()", bump)
    define("grow(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", grow)
    define("halves(Tensor x) -> Tensor[]", halves)
    define("fresh(int n, Device? device=None) -> Tensor", fresh)
    define("move(Tensor x, Device? device=None) -> Tensor", lambda x, device: x + 1)
    define("draw(Tensor x, Generator? generator=None) -> Tensor", draw)
    define("noise(Tensor x) -> Tensor", torch.rand_like, torch.Tag.nondeterministic_seeded)
    define("peek(Tensor(a) x) -> Tensor(a)", lambda x: x.view(-1))
    define("same(Tensor x, Tensor y) -> bool", lambda x, y: x is y)
    define("strides(Tensor x) -> int[]", lambda x: list(x.stride()))
    define("maybe(Tensor x, bool there) -> Tensor?", lambda x, there: x + 1 if there else None)
    define("fail(Tensor x) -> Tensor", lambda x: (_ for _ in ()).throw(ValueError("on purpose")))
    library.define("nowhere(Tensor x) -> Tensor")
    # An operator without tensors has nothing to dispatch on but the key it is asked for.
    library.impl("fresh", lambda n, device: _fresh_on_device(n, device), "BackendSelect")
    yield torch.ops.puone_test
    library._destroy()


def _fresh_on_device(n: int, device: torch.device | None) -> torch.Tensor:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.PrivateUse1)
    return torch.ops.puone_test.fresh.default.redispatch(keys, n, device)


class TestArguments:
    def test_an_optional_list_may_have_holes_and_be_empty(self, ops: Operators) -> None:
        x = torch.ones(3, device="puone")
        assert ops.total([x, None, x]).item() == 6
        assert ops.total([None, x]).device.type == "puone"

    def test_lists_and_optional_tensors_are_written_back(self, ops: Operators) -> None:
        xs = [torch.zeros(n, device="puone") for n in (1, 2, 3)]
        y = torch.ones(4, device="puone")
        ops.bump(xs, y)
        ops.bump(xs)
        ops.bump([], y)
        assert all(x.eq(2).all() for x in xs)
        assert y.eq(4).all()

    def test_a_view_with_gaps_is_written_back_without_touching_the_gaps(
        self, ops: Operators
    ) -> None:
        base = torch.zeros(4, 6, device="puone")
        ops.bump([base[::2, 1:3], base[1].t()])
        expected = torch.zeros(4, 6)
        expected[::2, 1:3], expected[1] = 1, 1
        assert torch.equal(base.cpu(), expected)

    def test_a_small_view_of_a_large_tensor_is_written_back(self, ops: Operators) -> None:
        base = torch.zeros(300, 300, device="puone")
        ops.bump([base[:, 7]])
        assert base.sum().item() == 300
        assert base[:, 7].eq(1).all()

    def test_out_is_resized_on_the_device(self, ops: Operators) -> None:
        x = torch.arange(4.0).to("puone")
        for out in (torch.empty(0, device="puone"), torch.empty(9, device="puone")):
            result = ops.grow(x, out=out)
            assert result is out
            assert torch.equal(out.cpu(), torch.tensor([0.0, 1, 2, 3, -1]))

    def test_the_device_argument_decides_where_the_result_is(self, ops: Operators) -> None:
        assert ops.fresh(3, torch.device("puone:1")).device == torch.device("puone:1")
        with puone.device(1):
            assert ops.fresh(3, torch.device("puone")).device.index == 1

    def test_the_device_argument_may_differ_from_the_tensors_device(self, ops: Operators) -> None:
        x = torch.zeros(2, device="puone:0")
        moved = ops.move(x, torch.device("puone:1"))
        assert moved.device.index == 1
        assert moved.eq(1).all()
        assert ops.move(x, None).device.index == 0

    def test_the_tensors_decide_otherwise_whatever_device_is_current(self, ops: Operators) -> None:
        x = torch.ones(4, device="puone:1")
        assert [half.device.index for half in ops.halves(x)] == [1, 1]
        with puone.device(1):
            assert torch.special.i0e(torch.zeros(2, device="puone:0")).device.index == 0

    def test_strides_arrive_unchanged(self, ops: Operators) -> None:
        x = torch.zeros(4, 6, device="puone")
        for view in (x, x.t(), x[::2], x[:1].expand(5, 6), x[:, :0]):
            assert ops.strides(view) == list(view.stride())

    def test_a_tensor_given_twice_arrives_as_one(self, ops: Operators) -> None:
        x = torch.zeros(3, device="puone")
        assert ops.same(x, x)
        assert not ops.same(x, x.clone())

    def test_what_is_written_to_one_argument_is_seen_through_another(self, ops: Operators) -> None:
        def bumped(device: str) -> torch.Tensor:
            x = torch.arange(12.0, device=device)
            ops.bump([x[:8], x[2:], x.view(3, 4).t(), x.view(torch.int32)[:0]], x[5:6])
            return x

        assert torch.equal(bumped("puone").cpu(), bumped("cpu"))

    def test_arguments_of_several_types_overlap(self, ops: Operators) -> None:
        def bumped(device: str) -> torch.Tensor:
            x = torch.arange(64, dtype=torch.uint8, device=device)[3:]
            ops.bump([x, x[5:].view(torch.int64)[1:4], x[13:].view(torch.complex128)[:2]])
            return x

        assert torch.equal(bumped("puone").cpu(), bumped("cpu"))

    def test_neighbours_in_one_storage_are_no_overlap(self, ops: Operators) -> None:
        x = torch.arange(12.0, device="puone")
        ops.bump([x[:4], x[8:]], x[4:8])
        expected = torch.tensor([1.0, 2, 3, 4, 8, 10, 12, 14, 9, 10, 11, 12])
        assert torch.equal(x.cpu(), expected)

    def test_an_overlap_that_the_cpu_refuses_is_refused(self) -> None:
        x = torch.tensor([3.0, 1.0, 2.0], device="puone")
        puone._reset_fallback_counts()
        with pytest.raises(RuntimeError, match="single memory"):
            torch.special.bessel_j0(x[1:], out=x[:-1])
        assert puone._fallback_counts() == {"aten::special_bessel_j0.out": 1}
        assert x.tolist() == [3.0, 1.0, 2.0]

    def test_an_absent_result_stays_absent(self, ops: Operators) -> None:
        x = torch.zeros(2, device="puone")
        assert ops.maybe(x, False) is None

    def test_empty_and_undefined_tensors_pass(self) -> None:
        x = torch.empty(0, 3, device="puone")
        assert torch.special.i0e(x).shape == (0, 3)
        grad_input, grad_weight, grad_bias = torch.ops.aten.native_layer_norm_backward(
            torch.ones(2, 3, device="puone"),
            torch.ones(2, 3, device="puone"),
            [3],
            torch.ones(2, 1, device="puone"),
            torch.ones(2, 1, device="puone"),
            None,
            None,
            [True, False, False],
        )
        assert grad_input.device.type == "puone"
        assert grad_weight is None
        assert grad_bias is None


class TestRefusals:
    def test_a_view_operator_is_named(self, ops: Operators) -> None:
        with pytest.raises(NotImplementedError, match=r"puone_test::peek.*view"):
            ops.peek(torch.ones(2, device="puone"))

    def test_an_operator_without_a_cpu_kernel_is_named(self, ops: Operators) -> None:
        with pytest.raises(NotImplementedError, match=r"puone_test::nowhere.*no CPU kernel"):
            ops.nowhere(torch.ones(2, device="puone"))

    def test_an_error_of_the_operator_arrives_and_harms_nothing(self, ops: Operators) -> None:
        x = torch.ones(2, device="puone")
        with pytest.raises(ValueError, match="on purpose"):
            ops.fail(x)
        assert torch.equal(torch.special.i0e(x).cpu(), torch.special.i0e(x.cpu()))

    @pytest.mark.parametrize("other", ["cpu", "puone:1"])
    def test_operands_of_different_devices_are_refused(self, other: str) -> None:
        x, y = torch.ones(2, 2, device="puone"), torch.ones(2, 2, device=other)
        with pytest.raises(RuntimeError, match="same device"):
            torch.mm(x, y)
        with pytest.raises(RuntimeError, match="same device"):
            torch.mm(x, x, out=torch.empty(2, 2, device=other))

    def test_numbers_and_indices_may_come_from_the_cpu(self) -> None:
        x = torch.arange(6.0).to("puone")
        assert torch.equal((x + torch.tensor(1.0)).cpu(), torch.arange(1.0, 7.0))
        assert torch.equal(x[torch.tensor([4, 2])].cpu(), torch.tensor([4.0, 2.0]))
        x[torch.tensor([0])] = torch.tensor(9.0)
        assert x[0].item() == 9

    @pytest.mark.parametrize("make", ["to_sparse", "to_mkldnn"])
    def test_results_that_are_not_strided_are_refused(self, make: str) -> None:
        with pytest.raises((NotImplementedError, RuntimeError)):
            getattr(torch.ones(2, 2, device="puone"), make)()

    def test_sparse_and_quantized_tensors_are_refused_not_fatal(self) -> None:
        with pytest.raises(NotImplementedError):
            torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (2,), device="puone")
        with pytest.raises(NotImplementedError):
            torch.quantize_per_tensor(torch.ones(2, device="puone"), 0.1, 0, torch.qint8)
        with pytest.raises(NotImplementedError):
            torch.ones(2).to_sparse().to("puone")


class TestCounting:
    def test_every_call_is_counted_under_the_operators_name(self) -> None:
        x = torch.ones(2, device="puone")
        for _ in range(3):
            torch.special.i0e(x)
        assert puone._fallback_counts() == {"aten::special_i0e.out": 3}
        puone._reset_fallback_counts()
        assert puone._fallback_counts() == {}

    def test_counts_of_several_threads_add_up(self) -> None:
        def work() -> None:
            x = torch.ones(2, device="puone")
            for _ in range(50):
                torch.special.i0e(x)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert puone._fallback_counts()["aten::special_i0e.out"] == 200


class TestRegistration:
    def test_an_operator_may_be_defined_anew_with_another_schema(self) -> None:
        x = torch.ones(2, device="puone")
        for schema, kernel, arguments in (
            ("anew(Tensor x) -> Tensor", lambda x: x + 1, (x,)),
            ("anew(Tensor x, Tensor y, Tensor z) -> Tensor", lambda x, y, z: x * y * z, (x, x, x)),
            ("anew(Tensor(a!) x) -> Tensor(a!)", lambda x: x.zero_(), (x,)),
        ):
            library = torch.library.Library("puone_again", "DEF")
            library.define(schema)
            library.impl("anew", kernel, "CPU")
            handle = torch._C._jit_get_operation("puone_again::anew")[0]
            assert handle(*arguments).shape == (2,)
            library._destroy()
        assert x.eq(0).all()
        assert puone._fallback_counts()["puone_again::anew"] == 3

    def test_a_cpu_kernel_may_arrive_after_the_first_call(self) -> None:
        x = torch.ones(2, device="puone")
        library = torch.library.Library("puone_late", "DEF")
        library.define("late(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError, match="no CPU kernel"):
            torch.ops.puone_late.late(x)
        library.impl("late", lambda x: x + 1, "CPU")
        assert torch.ops.puone_late.late(x).eq(2).all()
        library._destroy()


class TestRandom:
    def test_a_device_generator_reaches_the_operator(self, ops: Operators) -> None:
        x = torch.empty(5, device="puone")
        generator = torch.Generator(device="puone").manual_seed(3)
        first = ops.draw(x, generator)
        second = ops.draw(x, generator)
        generator.manual_seed(3)
        assert torch.equal(first.cpu(), ops.draw(x, generator).cpu())
        assert not torch.equal(first.cpu(), second.cpu())

    @pytest.mark.parametrize(
        "draw",
        [
            lambda: torch.rand(8, device="puone"),
            lambda: torch.randn(8, device="puone"),
            lambda: torch.randperm(32, device="puone"),
            lambda: torch.randint(1000, (8,), device="puone"),
            lambda: torch.empty(8, device="puone").exponential_(),
            lambda: torch.empty(8, device="puone").random_(),
            lambda: torch.bernoulli(torch.full((64,), 0.5, device="puone")),
            lambda: torch.multinomial(torch.ones(64, device="puone"), 8),
            lambda: torch.poisson(torch.full((8,), 100.0, device="puone")),
            lambda: torch.nn.functional.dropout(torch.ones(64, device="puone")),
            lambda: torch.nn.functional.rrelu(-torch.ones(8, device="puone"), training=True),
            lambda: torch.distributions.Gamma(torch.ones(8, device="puone"), 1.0).sample(),
        ],
    )
    def test_a_draw_depends_on_the_devices_generator_and_on_nothing_else(self, draw: Any) -> None:
        cpu_state = torch.get_rng_state()
        state = puone.get_rng_state()
        first = draw().cpu()
        assert torch.equal(torch.get_rng_state(), cpu_state)
        assert not torch.equal(puone.get_rng_state(), state)
        torch.rand(100)
        again = draw().cpu()
        puone.set_rng_state(state)
        assert torch.equal(draw().cpu(), first)
        assert not torch.equal(first, again)

    def test_only_a_draw_that_uses_numbers_advances_the_generator(self, ops: Operators) -> None:
        before = puone.get_rng_state()
        ops.draw(torch.empty(0, 3, device="puone"))
        assert torch.equal(puone.get_rng_state(), before)
        with pytest.raises(RuntimeError, match="not implemented for 'Long'"):
            ops.draw(torch.empty(3, dtype=torch.int64, device="puone"))
        assert torch.equal(puone.get_rng_state(), before)
        ops.draw(torch.empty(700, device="puone"))
        assert not torch.equal(puone.get_rng_state(), before)

    def test_an_operator_without_a_generator_argument_draws_from_the_devices(
        self, ops: Operators
    ) -> None:
        x = torch.empty(5, device="puone")
        torch.randn(1)  # the CPU's generator keeps the second number of a pair
        cpu_state, state = torch.get_rng_state(), puone.get_rng_state()
        first = ops.noise(x).cpu()
        assert torch.equal(torch.get_rng_state(), cpu_state)
        assert not torch.equal(puone.get_rng_state(), state)
        assert not torch.equal(ops.noise(x).cpu(), first)
        puone.set_rng_state(state)
        torch.rand(100)
        assert torch.equal(ops.noise(x).cpu(), first)
        x = x.new_empty(5, dtype=torch.int64)
        state = puone.get_rng_state()
        with pytest.raises(RuntimeError):
            ops.noise(x)
        assert torch.equal(puone.get_rng_state(), state)

    def test_devices_draw_from_generators_of_their_own(self) -> None:
        puone.manual_seed_all(5)
        first = torch.rand(8, device="puone:1")
        puone.manual_seed_all(5)
        torch.rand(8, device="puone:0")
        assert torch.equal(torch.rand(8, device="puone:1").cpu(), first.cpu())

    def test_a_generator_of_another_device_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match="Expected a 'puone' device type for generator"):
            torch.rand(2, device="puone", generator=torch.Generator())

    def test_many_draws_do_not_repeat(self) -> None:
        x = torch.empty(2, dtype=torch.int64, device="puone")
        draws = {tuple(x.random_().tolist()) for _ in range(2000)}
        assert len(draws) == 2000


class TestAsynchrony:
    def test_results_are_ordered_with_the_current_stream(self) -> None:
        side = puone.Stream()
        with puone.stream(side):
            x = torch.zeros(4, device="puone")
            puone._sleep_ms(30)
            x.fill_(0.5)
            y = torch.special.i0e(x)
            x.zero_()
        side.synchronize()
        assert torch.allclose(y.cpu(), torch.special.i0e(torch.full((4,), 0.5)))

    @pytest.mark.parametrize("size", [1, 1000, 1 << 16])
    def test_results_of_every_size_arrive_whole(self, size: int) -> None:
        x = torch.linspace(-0.9, 0.9, size)
        y = x.to("puone")
        puone._sleep_ms(10)
        results = [torch.special.i0e(y + 0.0 * i) for i in range(5)]
        assert all(torch.equal(r.cpu(), torch.special.i0e(x)) for r in results)
