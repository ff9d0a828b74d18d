# SPDX-License-Identifier: BSD-3-Clause
"""Known answers of error and gamma functions. Numbers are mpmath 1.3's, computed with 40 digits, at
points that every type can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from hal_conformance.answers import Array, Case
from hal_conformance.kernels import DType
from hal_conformance.known_answers._elementwise import Points, Row, at, cases_of, only
from hal_conformance.known_answers._numbers import erf, erfc

ERFINV = {
    0.5: "0.476936276204469873381",
    -0.5: "-0.476936276204469873381",
    0.25: "0.225312055012178104725",
    0.125: "0.111235451840949959147",
    0.75: "0.81341984759761854169",
    -0.875: "-1.08478704006928314131",
    0.9375: "1.31715033498613074888",
    0.984375: "1.70947237429951147855",
    -0.99609375: "-2.040452014605609194",
    0.0078125: "0.00692375849154961370808",
    -0.0009765625: "-0.000865456197967137553451",
    6.103515625e-05: "0.0000540909989207199875776",
}
LGAMMA = {
    0.5: "0.572364942924700087072",
    1.5: "-0.120782237635245222346",
    2.5: "0.284682870472919159632",
    3: "0.693147180559945309417",
    4: "1.79175946922805500081",
    10: "12.8018274800814696112",
    0.25: "1.28802252469807745737",
    0.0078125: "4.84757077588166486683",
    0.0009765625: "6.93090890241946188954",
    -0.5: "1.26551212348464539649",
    -1.5: "0.860047015376481014511",
    -2.5: "-0.0562437164976740506726",
    -0.125: "2.16530024890517025175",
    -3.25: "-0.623153451320998646625",
    20: "39.3398841871994940362",
    100: "359.134205369575398776",
    240: "1073.5323078956328744",
    1.0078125: "-0.00445948803795229908667",
    1.9921875: "-0.00328328859922133400809",
}
DIGAMMA = {
    0.5: "-1.96351002602142347944",
    1: "-0.577215664901532860607",
    1.5: "0.036489973978576520559",
    2: "0.422784335098467139393",
    3: "0.922784335098467139393",
    10: "2.25175258906672110765",
    0.25: "-4.22745353337626540809",
    0.0078125: "-128.564437472976727637",
    0.0009765625: "-1024.57561042934062191",
    -0.5: "0.036489973978576520559",
    -1.25: "3.71413912021352783037",
    -2.75: "-1.95905526497799700982",
    -0.125: "7.19598292845230461768",
    -10.5: "2.39823912953578161337",
    20: "2.97052399224214905088",
    100: "4.6001618527380874002",
    1024: "6.93098344487660097277",
    11.5: "2.39823912953578161337",
}
ZETA_AT = (1, 0.5, 2.5, 10, 0.25, 100, -0.5, -1.25, 0, -2)
ZETA = {
    2: (
        "1.64493406684822643647",
        "4.93480220054467930942",
        "0.490357756100234864973",
        "0.105166335681685746122",
        "17.1973291545071107393",
        "0.0100501666633335713952",
        "8.93480220054467930942",
        "19.1818796476716064984",
        "inf",
        "inf",
    ),
    1.5: (
        "2.61237534868548834335",
        "4.77653794755483324858",
        "1.40377976885682579582",
        "0.648661631941570422147",
        "10.2130553604666007389",
        "0.200501249981771907421",
        "nan",
        "nan",
        "inf",
        "inf",
    ),
    1.125: (
        "8.58624129451057529996",
        "10.1404837578764933107",
        "7.32574840924321750542",
        "6.0373506367335874849",
        "12.9808369272103451817",
        "4.50154758004032258062",
        "nan",
        "nan",
        "inf",
        "inf",
    ),
    3: (
        "1.2020569031595942854",
        "8.4143983221171599978",
        "0.118102025820863701502",
        "0.00552491748540103373105",
        "64.6638699687684601667",
        "0.0000505024999166749985004",
        "0.414398322117159997798",
        "-61.8606833918311801843",
        "inf",
        "inf",
    ),
    8: (
        "1.00407735619794433938",
        "256.039725830475806542",
        "0.000707388165183160982508",
        "1.99426817434312758707e-8",
        "65536.1693867090174162",
        "1.47923799526950951818e-15",
        "512.039725830475806542",
        "65546.1681980527890584",
        "inf",
        "inf",
    ),
    20: (
        "1.0000009539620338728",
        "1048576.00030073966817",
        "1.10083454668541431426e-8",
        "1.18160477582516795535e-20",
        "1099511627776.01152931",
        "5.77981174646566498063e-40",
        "2097152.00030073966817",
        "1099511628091.3483982",
        "inf",
        "inf",
    ),
    1: ("inf", "inf", "inf", "inf", "inf", "inf", "inf", "inf", "inf", "inf"),
    0.5: ("nan", "nan", "nan", "nan", "nan", "nan", "nan", "nan", "nan", "nan"),
}
# Where adding the terms one by one would take years.
ZETA_FAR_AT = (1, 0.5, 2, 30, -1e10 - 0.25, -2.25, -(2.0**-60), -1e300)
ZETA_FAR = {
    1e300: ("1.0", "inf", "0", "0", "inf", "inf", "inf", "inf"),
    2.0**40: ("1.0", "inf", "0", "0", "inf", "inf", "inf", "inf"),
    50: (
        "1.00000000000000088818",
        "1125899906842624.0",
        "8.8817842109308159031e-16",
        "1.73393547760819362256e-74",
        "1.2676506002282294015e+30",
        "1.2676506002282294015e+30",
        "inf",
        "inf",
    ),
    3: (
        "1.2020569031595942854",
        "8.4143983221171599978",
        "0.2020569031595942854",
        "0.000574382601864299922003",
        "-62.0125533605996403509",
        "-61.9484748870300827906",
        "-1.53249554086588885836e+54",
        "inf",
    ),
    2: (
        "1.64493406684822643647",
        "4.93480220054467930942",
        "0.644934066848226436472",
        "0.0338950603577399442138",
        "19.7392088020787172377",
        "19.3794105118691373626",
        "1.3292279957849158729e+36",
        "inf",
    ),
    2.5: (
        "1.34148725725091717976",
        "6.24711063456881148529",
        "0.341487257250917179757",
        "0.00416004257384558825041",
        "nan",
        "nan",
        "nan",
        "inf",
    ),
}

# Poles, infinities and what is exact.
LIMITS: dict[str, dict[float, str]] = {
    "erfinv": {1: "inf", -1: "-inf", 0: "0", 1.5: "nan", -np.inf: "nan", np.nan: "nan"},
    "lgamma": {1: "0", 2: "0", 0: "inf", -1: "inf", -2: "inf", np.inf: "inf", np.nan: "nan"},
    "digamma": {0: "-inf", -1: "nan", -2: "nan", np.inf: "inf", -np.inf: "nan", np.nan: "nan"},
}


def looked_up(table: Mapping[float, str]) -> Callable[[Array], Array]:
    numbers = {x: np.longdouble(y) for x, y in table.items() if x == x}

    def function(x: Array) -> Array:
        flat = [numbers[value] if value == value else value for value in x.reshape(-1)]
        return np.array(flat, np.longdouble).reshape(x.shape)

    return function


def tabulated(kernel: str, table: Mapping[float, str], ulps: float, absolute: float = 0) -> Row:
    whole = {**table, **LIMITS[kernel]}
    return Row(kernel, looked_up(whole), only(list(whole)), ulps=ulps, absolute=absolute)


def zeta(s: Array, q: Array) -> Array:
    s, q = np.broadcast_arrays(s, q)
    places = zip(s.reshape(-1).tolist(), q.reshape(-1).tolist(), strict=True)
    flat = [np.longdouble(ZETA_OF[x, y] if x == x and y == y else "nan") for x, y in places]
    return np.array(flat, np.longdouble).reshape(s.shape)


def entropy(x: Array) -> Array:
    return np.where(x > 0, -x * np.log(x), np.where(x == 0, 0, np.where(x < 0, -np.inf, x)))


def with_sign_of_zero(kernel: str, at_zero: float, at_negative_zero: float) -> Row:
    return Row(
        kernel,
        lambda x: np.where(np.signbit(x), at_negative_zero, at_zero),
        only([0.0, -0.0]),
        signs=True,
        label="zeros",
    )


ERROR = at(0.5, -0.5, 0.25, 0.999, 1, 1.001, -1.001, 2, 2.5, 3.9, 4.1, -6, 1e-3, 1e-20, scale=1.5)
TAIL: Points = at(0.5, -0.5, 1, 2, 4, 6, 9, 10, -5, 13.2, 20, 26, 1e-3, 28, scale=2)
PAIRS = {(s, q): ZETA[s][i] for s in ZETA for i, q in enumerate(ZETA_AT)}
FAR = {(s, q): ZETA_FAR[s][i] for s in ZETA_FAR for i, q in enumerate(ZETA_FAR_AT)}
ZETA_OF = PAIRS | FAR

ROWS = [
    Row("erf", erf, ERROR, ulps=2.5, signs=True),
    Row("erfc", erfc, TAIL, ulps=5),
    tabulated("erfinv", ERFINV, ulps=2),
    with_sign_of_zero("erfinv", 0.0, -0.0),
    tabulated("lgamma", LGAMMA, ulps=2, absolute=2),
    with_sign_of_zero("lgamma", np.inf, np.inf),
    tabulated("digamma", DIGAMMA, ulps=4, absolute=4),
    with_sign_of_zero("digamma", -np.inf, np.inf),
    Row("zeta", zeta, only([s for s, _ in PAIRS], [q for _, q in PAIRS]), ulps=4, absolute=4),
    Row("zeta", zeta, only([2, np.nan, np.nan], [np.nan, 1, np.nan]), label="NaN"),
    Row(
        "zeta",
        zeta,
        only([s for s, _ in FAR], [q for _, q in FAR]),
        ulps=4,
        absolute=4,
        types=(DType.FLOAT64,),
        label="far",
    ),
    Row("special_entr", entropy, at(0.5, 1, 2, 10, 1e-3), ulps=3.5),
]


def cases() -> Iterator[Case]:
    yield from cases_of(ROWS)
