"""Coefficients of the elementary functions in vector_math, and split constants for argument reduction."""

from __future__ import annotations

# -- emitted from here --

# Coefficients of polynomials, ascending, by Chebyshev interpolation in 60 digits; comments give the errors of the fits.
# EXP 64: relative error of the fit 1.28e-17
EXP64 = (
    float.fromhex("0x1.0000000000001p-1"),
    float.fromhex("0x1.5555555555556p-3"),
    float.fromhex("0x1.5555555553d37p-5"),
    float.fromhex("0x1.11111111109a6p-7"),
    float.fromhex("0x1.6c16c1789d1d7p-10"),
    float.fromhex("0x1.a01a01a7cebcdp-13"),
    float.fromhex("0x1.a019b8ca26fcfp-16"),
    float.fromhex("0x1.71de0d85293b8p-19"),
    float.fromhex("0x1.2891d4ffbb0f9p-22"),
    float.fromhex("0x1.af390ba7e6f47p-26"),
)
# EXP 32: relative error of the fit 7.85e-9
EXP32 = (0.5, 0.16666576266288757, 0.04166655242443085, 0.00836323294788599, 0.0013926250394433737)
# LOG 64: relative error of the fit 4.6e-18
LOG64 = (
    float.fromhex("0x1.5555555555558p-1"),
    float.fromhex("0x1.9999999995273p-2"),
    float.fromhex("0x1.2492492dfd86cp-2"),
    float.fromhex("0x1.c71c62d5e53e0p-3"),
    float.fromhex("0x1.7462b91b8df65p-3"),
    float.fromhex("0x1.39fdcceb4bb45p-3"),
    float.fromhex("0x1.2b5f68a50d903p-3"),
)
# LOG 32: relative error of the fit 2.78e-9
LOG32 = (0.6666668653488159, 0.3998875916004181, 0.29580986499786377)
# SIN 64: relative error of the fit 8.41e-19
SIN64 = (
    float.fromhex("-0x1.5555555555555p-3"),
    float.fromhex("0x1.1111111111107p-7"),
    float.fromhex("-0x1.a01a01a018a6bp-13"),
    float.fromhex("0x1.71de3a5453a9cp-19"),
    float.fromhex("-0x1.ae6455a012592p-26"),
    float.fromhex("0x1.612400c8c470dp-33"),
    float.fromhex("-0x1.ae5109fea6b7ap-41"),
    float.fromhex("0x1.899eb3575b7f2p-49"),
)
# SIN 32: relative error of the fit 1.72e-8
SIN32 = (-0.1666666567325592, 0.008333241567015648, -0.0001982266694540158, 2.6345196602051146e-06)
# ASIN 64: relative error of the fit 5.87e-17
ASIN64 = (
    float.fromhex("0x1.555555555554fp-3"),
    float.fromhex("0x1.3333333336df1p-4"),
    float.fromhex("0x1.6db6db6844effp-5"),
    float.fromhex("0x1.f1c71f9893729p-6"),
    float.fromhex("0x1.6e8b2ac4e2b69p-6"),
    float.fromhex("0x1.1c5945b94f7fdp-6"),
    float.fromhex("0x1.c871802719808p-7"),
    float.fromhex("0x1.8529ff2c9d7d9p-7"),
    float.fromhex("0x1.ff173d5fcbafcp-8"),
    float.fromhex("0x1.06f2e84e31c1bp-6"),
    float.fromhex("-0x1.61041ccc64457p-7"),
    float.fromhex("0x1.cdd3a521b6ed7p-6"),
)
# ASIN 32: relative error of the fit 1.81e-8
ASIN32 = (0.16666673123836517, 0.07498852908611298, 0.04500189423561096, 0.026550663635134697, 0.03809396177530289)
# ATAN 64: relative error of the fit 4.75e-18
ATAN64 = (
    float.fromhex("-0x1.5555555555555p-2"),
    float.fromhex("0x1.999999999933dp-3"),
    float.fromhex("-0x1.24924924355d5p-3"),
    float.fromhex("0x1.c71c7184c32bfp-4"),
    float.fromhex("-0x1.745d0b153ffadp-4"),
    float.fromhex("0x1.3b126143b5cbcp-4"),
    float.fromhex("-0x1.10fa5ee9ab25cp-4"),
    float.fromhex("0x1.dfe49b2919c4ep-5"),
    float.fromhex("-0x1.a090d1950d2b4p-5"),
    float.fromhex("0x1.41495cefb6c73p-5"),
    float.fromhex("-0x1.39f38ad451ea7p-6"),
)
# ATAN 32: relative error of the fit 2.36e-9
ATAN32 = (-0.3333333134651184, 0.19999538362026215, -0.14263896644115448, 0.10743099451065063, -0.06449835002422333)
# ERF 64: relative error of the fit 7.45e-18
ERF64 = (
    float.fromhex("0x1.20dd750429b6dp+0"),
    float.fromhex("-0x1.812746b0379c0p-2"),
    float.fromhex("0x1.ce2f21a040f20p-4"),
    float.fromhex("-0x1.b82ce31202513p-6"),
    float.fromhex("0x1.565bccfa1cce7p-8"),
    float.fromhex("-0x1.c02db0604590bp-11"),
    float.fromhex("0x1.f9a2bdb8fcb67p-14"),
    float.fromhex("-0x1.f4ca7a42278fdp-17"),
    float.fromhex("0x1.b981799c363d2p-20"),
    float.fromhex("-0x1.5c10c8957465dp-23"),
    float.fromhex("0x1.d75aba73d5ca8p-27"),
    float.fromhex("-0x1.ac641bc040b16p-31"),
)
# ERF 32: relative error of the fit 4.11e-8
ERF32 = (
    1.1283791065216064,
    -0.37612342834472656,
    0.11280304193496704,
    -0.02671464905142784,
    0.004921244457364082,
    -0.0005645768251270056,
)
# ERFCX 64: relative error of the fit 8.22e-18
ERFCX64 = (
    float.fromhex("0x1.40c522d7e4987p-1"),
    float.fromhex("-0x1.15c084bb9e900p-4"),
    float.fromhex("-0x1.85a15c58aa643p-6"),
    float.fromhex("0x1.098366a5b4f1bp-4"),
    float.fromhex("-0x1.e88b803a48340p-5"),
    float.fromhex("0x1.17ca2877be46cp-5"),
    float.fromhex("-0x1.8574c40c04d6bp-7"),
    float.fromhex("0x1.4b884ed0d1ce6p-10"),
    float.fromhex("0x1.ef1bdd025d84ep-11"),
    float.fromhex("-0x1.98db6b496e563p-12"),
    float.fromhex("-0x1.b911e6903905bp-15"),
    float.fromhex("0x1.065d01db2aac1p-14"),
    float.fromhex("0x1.4bc571602baf8p-19"),
    float.fromhex("-0x1.519173b637bcfp-17"),
    float.fromhex("-0x1.786b4d9c1f69fp-22"),
    float.fromhex("0x1.d741da290dff7p-20"),
    float.fromhex("0x1.25389004d2586p-23"),
    float.fromhex("-0x1.55c5826ce6ff5p-22"),
    float.fromhex("-0x1.2badb5328d03ep-26"),
    float.fromhex("0x1.36e2a38ec290dp-25"),
)
# ERFCX 32: relative error of the fit 2.99e-8
ERFCX32 = (
    0.6265040040016174,
    -0.0678107738494873,
    -0.023778555914759636,
    0.06482890248298645,
    -0.059681590646505356,
    0.03412158787250519,
    -0.011621030978858471,
    0.001213954179547727,
    0.0004240193811710924,
)
# Leading parts have 41 (11) bits of ln 2 and 33 (12) bits of pi, so that products with small integers are exact.
LN2_64 = (float.fromhex("0x1.62e42fefa3000p-1"), float.fromhex("0x1.3de6af278ece6p-42"))
LN2_32 = (float.fromhex("0x1.62e4000000000p-1"), float.fromhex("0x1.7f7d1cf79abcap-20"))
PI_64 = (
    float.fromhex("0x1.921fb54400000p+1"),
    float.fromhex("0x1.0b4611a600000p-33"),
    float.fromhex("0x1.3198a2e037073p-68"),
)
PI_32 = (
    float.fromhex("0x1.9200000000000p+1"),
    float.fromhex("0x1.fb40000000000p-11"),
    float.fromhex("0x1.4442d18469899p-23"),
)

EXP, LOG, SIN = (EXP64, EXP32), (LOG64, LOG32), (SIN64, SIN32)
ASIN, ATAN, ERF, ERFCX = (ASIN64, ASIN32), (ATAN64, ATAN32), (ERF64, ERF32), (ERFCX64, ERFCX32)
