#pragma once

#include <cstdint>

/// Written by tools/fit_tables.py, which explains the method.
namespace palimpsest::PALIMPSEST_LEVEL {

/// The bits of an f32 number for each interval.
using TableRow = std::uint32_t[8];

/// tanh(a)
struct TanhTable {
  static constexpr float end = 0x1.266666p3F, square = -0x1.47ae14p-4F, linear = 0x1.8a3d7p0F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x3f2e0224, 0x3fb46878, 0x400d8688,
                                       0x40473746, 0x40854765, 0x40afce25, 0x40f72b62};
  static constexpr TableRow coefficients[] = {{0x00000000, 0x3f1761e4, 0x3f632afe, 0x3f79ed84,
                                               0x3f7efd35, 0x3f7fe065, 0x3f7ffdc9, 0x3f7ffff9},
                                              {0x3f800000, 0x3f267b5e, 0x3e59aae9, 0x3d40018e,
                                               0x3c012419, 0x3a7cc867, 0x388dd088, 0x3551b1bb},
                                              {0xb487b907, 0xbec4e52c, 0xbe412706, 0xbd3b7362,
                                               0xbc00a1b2, 0xba7caae0, 0xb88e4bc0, 0xb539668e},
                                              {0xbeaaa8ca, 0x3c2e3bfe, 0x3dc5aff6, 0x3cee013e,
                                               0x3baa26f3, 0x3a2847ea, 0x383d15d8, 0x350cbed5},
                                              {0xb98cdbd1, 0x3df9e442, 0xbcbab8e7, 0xbc56e950,
                                               0xbb276636, 0xb9a7bfe6, 0xb7b5d085, 0xb4b3280e},
                                              {0x3e0adcb4, 0xbd7a9109, 0xbbedc9ae, 0x3b88587b,
                                               0x3a81abfb, 0x3905b9c6, 0x3716bdb9, 0x33d4b71b},
                                              {0xbc181287, 0xbc71049b, 0x3c23b8a2, 0xba269fe9,
                                               0xb9a49cf2, 0xb839133a, 0xb686f2c2, 0xb2c870cf},
                                              {0xbd1c1b9c, 0x3cd56a5a, 0xbb90c80c, 0xb9465050,
                                               0x389f4601, 0x374ec17b, 0x3576c7b9, 0x325eeb04}};
};

/// erf(a)
struct ErfTable {
  static constexpr float end = 0x1.f70a3ep1F, square = -0x1p-2F, linear = 0x1.71eb86p1F;
  static constexpr float slope = 1;
  static constexpr TableRow centers = {0x00000000, 0x3eb86c2a, 0x3f3e45c3, 0x3f943eb5,
                                       0x3fceab16, 0x40083a39, 0x402ebe10, 0x405f993e};
  static constexpr TableRow coefficients[] = {{0x00000000, 0x3ec7703c, 0x3f34f087, 0x3f6607bc,
                                               0x3f7a437c, 0x3f7f54eb, 0x3f7ff89c, 0x3f7ffff3},
                                              {0x3e0375d4, 0xbc122d64, 0xbeb37c48, 0xbf3476a3,
                                               0xbf6ab166, 0xbf7ce35f, 0xbf7fd534, 0xbf7fffa1},
                                              {0xb0c345d9, 0xbeb6c6e9, 0xbef7245f, 0xbeaef7aa,
                                               0xbe099c1d, 0xbcd3f57a, 0xbae9ce18, 0xb7a6bf5c},
                                              {0xbec092ef, 0xbe7a7fcf, 0x3cb9bbc7, 0x3e297484,
                                               0x3def7665, 0x3d05d4ec, 0x3b45f68b, 0x3832084b},
                                              {0xb942afb5, 0x3e26f04f, 0x3e1c2167, 0x3c942fa9,
                                               0xbd4b0399, 0xbcd635b5, 0xbb669971, 0xb88db985},
                                              {0x3debf770, 0x3d4abc81, 0xbd50691e, 0xbd6ae0f8,
                                               0xbb70232a, 0x3c480923, 0x3b49d34a, 0x38db355c},
                                              {0xbc585b8d, 0xbd467b7a, 0xbce35814, 0x3c8b5d06,
                                               0x3c6f6803, 0xbad9fe12, 0xbaf41849, 0xb8cc66df}};
};

/// sigmoid(−a)
struct SigmoidTable {
  static constexpr float end = 0x1.133334p4F, square = -0x1.47ae14p-8F, linear = 0x1.0a3d7p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x40248908, 0x4094685a, 0x40d992f1,
                                       0x41111c23, 0x4137786c, 0x41603fe3, 0x418552c4};
  static constexpr TableRow coefficients[] = {{0x3f000000, 0x3d917bff, 0x3c1d11d4, 0x3a91f0d6,
                                               0x38f16fbc, 0x372fac2f, 0x355bc1d2, 0x337876b6},
                                              {0xbe800000, 0xbd872649, 0xbc1b9059, 0xba91c73d,
                                               0xb8f1689e, 0xb72fabb6, 0xb55bc1c5, 0xb37876b4},
                                              {0xb2b438de, 0x3ce7e583, 0x3b9894c8, 0x3a117424,
                                               0x38715a62, 0x36afaac3, 0x34dbc1a9, 0x32f876ab},
                                              {0x3caaab99, 0xbbd9b30f, 0xbac399d3, 0xb94112c8,
                                               0xb7a0d40e, 0xb5ea36be, 0xb4128140, 0xb225a4ba},
                                              {0xb6757b3c, 0x3a00aaa0, 0x39b441be, 0x383f58c2,
                                               0x36a0ae69, 0x34ea329f, 0x331281df, 0x3125a63f},
                                              {0xbb0780ce, 0x3983c36e, 0xb8712cc4, 0xb7166197,
                                               0xb58045b4, 0xb3bb3e78, 0xb1ea4091, 0xb0046c04},
                                              {0xb82408bb, 0xb8e492aa, 0x36c85a5c, 0x35c11ee3,
                                               0x342a7ff3, 0x3279bb3c, 0x309c513a, 0x2eb0a44c},
                                              {0x398cebd0, 0x37a13316, 0x347121c5, 0xb446ca11,
                                               0xb2c57b05, 0xb11345dd, 0xaf3a213f, 0xad53fae9},
                                              {0xb84eb76f, 0xb448a874, 0xb346ca80, 0x32d71f04,
                                               0x3118074a, 0x2f4d78e6, 0x2d6dcbb5, 0x2b7fb5ce},
                                              {0xb5c34cc4, 0xb62c53d1, 0x341bf5dc, 0x2f7d5b26,
                                               0xb0121923, 0xae772ef9, 0xaca3d6a5, 0xaabe22f0}};
};

/// softplus(−a)
struct SoftplusTable {
  static constexpr float end = 0x1.133334p4F, square = -0x1.47ae14p-8F, linear = 0x1.0a3d7p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x40248905, 0x40946840, 0x40d992db,
                                       0x41111c38, 0x4137782d, 0x41603ffa, 0x418552aa};
  static constexpr TableRow coefficients[] = {{0x3f317218, 0x3d96e911, 0x3c1dd44f, 0x3a92060b,
                                               0x38f1720e, 0x372faf1f, 0x355bc09c, 0x337879de},
                                              {0xbf000000, 0xbd917c05, 0xbc1d1253, 0xba91f13a,
                                               0xb8f16e7f, 0xb72faee2, 0xb55bc095, 0xb37879dc},
                                              {0x3dffff93, 0x3d072649, 0x3b9b90d7, 0x3a11c7a1,
                                               0x3871675f, 0x36afae68, 0x34dbc085, 0x32f879d5},
                                              {0x37270ac7, 0xbc1a994f, 0xbacb7155, 0xb941f0ca,
                                               0xb7a0e62a, 0xb5ea3cf0, 0xb412808a, 0xb225a6e5},
                                              {0xbbac638d, 0x3ad9bad9, 0x39c39987, 0x384112e3,
                                               0x36a0d3ef, 0x34ea3aee, 0x33128143, 0x3125a815},
                                              {0x391e2a8f, 0xb8cc55ed, 0xb89054a9, 0xb7191188,
                                               0xb58081b4, 0xb3bb46df, 0xb1ea40e9, 0xb0046ca7},
                                              {0x38c55a8d, 0xb8309ec1, 0x37205d70, 0x35c8bedc,
                                               0x342afc2b, 0x3279fb26, 0x309c5101, 0x2eb0be61},
                                              {0x3982c81f, 0x375cbcab, 0xb546d08e, 0xb45af1cf,
                                               0xb2c895e7, 0xb1130605, 0xaf3a0ecd, 0xad536f22},
                                              {0xb92a2063, 0xb6b1ff72, 0x340ce9e3, 0x32cd98aa,
                                               0x31128456, 0x2f4ef0cd, 0x2d6e98e4, 0x2b81535c},
                                              {0x380f0dd1, 0xb5bc2e13, 0x33b846c7, 0xb1313bad,
                                               0xb01de314, 0xae77d82a, 0xaca397dc, 0xaabd6caf}};
};

/// a·Φ(−a)
struct GeluTable {
  static constexpr float end = 0x1.ap2F, square = 0x1.6ae7d6p-4F, linear = 0x1.266666p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x3fe04543, 0x40322283, 0x406a2fd9,
                                       0x408de975, 0x40a46d60, 0x40b92fb6, 0x40cc3f4f};
  static constexpr TableRow coefficients[] = {{0x00000000, 0x3d8f179e, 0x3bf5570a, 0x39f2b780,
                                               0x37ab7607, 0x353f251f, 0x32b20564, 0x30189abc},
                                              {0x3f000000, 0xbde2c77f, 0xbca70794, 0xbadc2cb5,
                                               0xb8bd4c87, 0xb674f192, 0xb4009389, 0xb1733ecd},
                                              {0xbecc4229, 0x3d3c5952, 0x3cc3310f, 0x3b383b91,
                                               0x39462839, 0x3716eddf, 0x34b42462, 0x323d140a},
                                              {0xb51a1c07, 0x3cbf41b9, 0xbc6c25ce, 0xbb3940d6,
                                               0xb981e1d4, 0xb76d5281, 0xb522b728, 0xb2bec20a},
                                              {0x3d882fa6, 0xbceca01b, 0x3b5d9e29, 0x3af16e0d,
                                               0x396c96ba, 0x37850ca1, 0x35546b4d, 0x330c2d37},
                                              {0xb82c13cd, 0x3c02807f, 0x3ab58118, 0xba4544de,
                                               0xb91c424f, 0xb760ed7a, 0xb554a898, 0xb31f74c1},
                                              {0xbc210730, 0x3b0253f0, 0xbab2849e, 0x390d54be,
                                               0x3895aea5, 0x37136b73, 0x352965d2, 0x33124e9e},
                                              {0xb9a4a440, 0xbad8e3f2, 0x39c99c0a, 0x3833bdfc,
                                               0xb7c05595, 0xb697548c, 0xb4df55ed, 0xb2e55392},
                                              {0x3ad21d2a, 0x39057fcc, 0x37a68980, 0xb835fe6a,
                                               0x36b2efff, 0x35e72daa, 0x3438ac29, 0x323fe983},
                                              {0xb9a7093a, 0x3944ad32, 0xb88ef8a7, 0x3712eebf,
                                               0x364ace68, 0xb51fcbaf, 0xb42b34d3, 0xb2924135}};
};

/// Φ(−a) − a·φ(a)
struct GeluSlopeTable {
  static constexpr float end = 0x1.933334p2F, square = 0x1.eb851ep-6F, linear = 0x1.f5c29p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x3f407569, 0x400c8889, 0x4044c9be,
                                       0x407a9946, 0x4097214a, 0x40b00193, 0x40c57633};
  static constexpr TableRow coefficients[] = {{0x3f000000, 0xb1b39bec, 0xbd84388e, 0xbc20a0cc,
                                               0xba340703, 0xb7d8e286, 0xb519bff7, 0xb25e2263},
                                              {0xbf4c422a, 0xbedcecc8, 0x3dcee30c, 0x3cd7a091,
                                               0x3b234d3a, 0x38f399fc, 0x364bf9b5, 0x33a69be9},
                                              {0x35acdcf9, 0x3ec6cd4a, 0xbd044a66, 0xbcf290aa,
                                               0xbb87e014, 0xb981a540, 0xb7024f76, 0xb472c633},
                                              {0x3e88287b, 0x3c951a2b, 0xbd1ef04b, 0x3c832872,
                                               0x3b867a59, 0x39aca5a8, 0x3754cff9, 0x34e47835},
                                              {0x39a19f63, 0xbde97e06, 0x3d1e2de1, 0xbac8dee6,
                                               0xbb28b39c, 0xb99f72e7, 0xb7785cc2, 0xb51bb2f6},
                                              {0xbd7d5ccf, 0x3c718b41, 0xbc1c373e, 0xbb69059e,
                                               0x3a77c0e0, 0x3954c783, 0x375b1d50, 0x35233b27},
                                              {0x3c05bc9b, 0x3c9fbed5, 0xbb7a65b8, 0x3b187607,
                                               0xb8a14e83, 0xb8cc60c2, 0xb7167da4, 0xb5085ef1},
                                              {0xbc38c471, 0xbb907852, 0x3b389a00, 0xba026552,
                                               0xb9012400, 0x38017c2e, 0x36a28f5f, 0x34b9ddee},
                                              {0x3d0490c2, 0xbb454100, 0xb9c81868, 0xb9537728,
                                               0x38a915c0, 0xb6984bfc, 0xb6043fa3, 0xb44fd7d5},
                                              {0xbcf0e941, 0x3af44737, 0xb9f35213, 0x386152ae,
                                               0xb7873b92, 0xb60b8b71, 0x35478b76, 0x33ac5f93},
                                              {0x3c2eeeb6, 0xb9e65ee1, 0xb79ecd5b, 0xb7f01b06,
                                               0xb69ebb34, 0x36003202, 0xb2a7da66, 0xb359562d}};
};

/// −gelu_tanh(−a)
struct GeluTanhTable {
  static constexpr float end = 0x1.533334p2F, square = 0x1.47ae14p-3F, linear = 0x1.1eb852p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x3fc8de89, 0x401a7fd1, 0x40470929,
                                       0x406ddec6, 0x40886367, 0x40985feb, 0x40a6c77f};
  static constexpr TableRow coefficients[] = {{0x00000000, 0x3dbbbdba, 0x3c98aee0, 0x3b26876b,
                                               0x3984af60, 0x379e8edc, 0x35907856, 0x33604897},
                                              {0x3f000000, 0xbdffa58e, 0xbd37c25e, 0xbc0b1e2a,
                                               0xba8e16c7, 0xb8d0192b, 0xb6e15a48, 0xb4ca608e},
                                              {0xbecc4229, 0x3cd52529, 0x3d2d19bf, 0x3c4a5d10,
                                               0x3b0a5a39, 0x397e7cc0, 0x37a65b27, 0x35aea96e},
                                              {0xb51c66db, 0x3d4069ed, 0xbc800820, 0xbc20b84b,
                                               0xbb1f2da6, 0xb9bebaa5, 0xb819bf08, 0xb63f4099},
                                              {0x3d88dc4d, 0xbd0b6ee5, 0xbb4fa3aa, 0x3b857a67,
                                               0x3ae88075, 0x39c11fce, 0x3845f3e2, 0x36947742},
                                              {0xb8343bab, 0x3b95a030, 0x3bad0d79, 0xb987252d,
                                               0xba4f12e0, 0xb9882674, 0xb83a62c4, 0xb6acc0fe},
                                              {0xbc249e06, 0x3b77d6a7, 0xbae640b6, 0xba251716,
                                               0x391a1721, 0x3901958b, 0x380247e8, 0x369b1453},
                                              {0xb9b05fa8, 0xbad286d6, 0xb861bb63, 0x3994aef0,
                                               0x38679844, 0xb80d628a, 0xb7846928, 0xb65923b2},
                                              {0x3add6202, 0xb8a2194f, 0x39570a24, 0xb8825543,
                                               0xb839f4d3, 0xb3148a9a, 0x36c17c05, 0x35de446b},
                                              {0xb9b10642, 0x395a4f74, 0xb81c2dcf, 0xb8244a42,
                                               0x36bffe24, 0x36f74516, 0xb321227c, 0xb56a435c}};
};

/// the derivative of gelu_tanh at −a
struct GeluTanhSlopeTable {
  static constexpr float end = 0x1.666666p2F, square = 0x1.1eb852p-4F, linear = 0x1.dc28f6p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x3f40a150, 0x400804d1, 0x4039ff67,
                                       0x40682bbe, 0x4089a622, 0x409df4bd, 0x40afbf78};
  static constexpr TableRow coefficients[] = {{0x3f000000, 0xb1a7b202, 0xbd94d3b9, 0xbc73d956,
                                               0xbac7a2a1, 0xb8ab5d75, 0xb61bb7c2, 0xb35535cf},
                                              {0xbf4c422a, 0xbedc5d66, 0x3dd820eb, 0x3d1ea1a2,
                                               0x3bbac89a, 0x39d4d6ae, 0x37749793, 0x34c9aff4},
                                              {0x35a7527f, 0x3ec668d2, 0xbca61572, 0xbd211cb6,
                                               0xbc199d8d, 0xba737f42, 0xb83565cf, 0xb5b6b6bd},
                                              {0x3e88d540, 0x3c814959, 0xbd524d25, 0x3c7c98aa,
                                               0x3c0c582f, 0x3aa7c812, 0x38a7dfc7, 0x36525025},
                                              {0x3992b51d, 0xbde95bbf, 0x3d223bf5, 0x3b7fb0d4,
                                               0xbb8c781d, 0xba97b45d, 0xb8d75f13, 0xb6abe9e8},
                                              {0xbd80fc4e, 0x3c8850a8, 0xbbd6fa11, 0xbbd432f5,
                                               0x3a21538d, 0x3a34297f, 0x38c87120, 0x36d315c7},
                                              {0x3be3fc68, 0x3ca0f590, 0xbb937e7d, 0x3b1462f9,
                                               0x3a20cc03, 0xb975af0e, 0xb8889be3, 0xb6c862f0},
                                              {0xbbecbfda, 0xbbb129e3, 0x3b1fe4dd, 0x38caa73f,
                                               0xb9df984f, 0x36e81dfa, 0x3803e2c5, 0x3694869e},
                                              {0x3cd484ba, 0xbafc43de, 0xb9340aa6, 0xb95ff2c5,
                                               0xb7f1277b, 0x382da498, 0xb70da37c, 0xb629008a},
                                              {0xbcbdb433, 0x39f9e122, 0xb926568f, 0x39164542,
                                               0xb8f05e41, 0xb758419c, 0x35de3183, 0x359924ce},
                                              {0x3c04371c, 0x3980f780, 0x38d41bbf, 0x384a3178,
                                               0xb8b04e45, 0x36202e43, 0x364751c9, 0xb465eee9}};
};

/// −silu(−a)
struct SiluTable {
  static constexpr float end = 17, square = -0x1.47ae14p-7F, linear = 0x1.3851ecp-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x400e2379, 0x408193e9, 0x40c074b5,
                                       0x41026edb, 0x41284cb5, 0x41535977, 0x4182cf7b};
  static constexpr TableRow coefficients[] = {{0x00000000, 0x3e5e9e55, 0x3d8e1b30, 0x3c703533,
                                               0x3b19e53e, 0x399509a7, 0x37cb277e, 0x35adcfd0},
                                              {0x3f000000, 0xbdc92dd8, 0xbd51277f, 0xbc47aeb5,
                                               0xbb06f91a, 0xb986dd69, 0xb7bbc639, 0xb5a32e90},
                                              {0xbe800000, 0xbc1ab980, 0x3c83cc59, 0x3b9ec4e4,
                                               0x3a6808ce, 0x38f160aa, 0x372c64dd, 0x35188d4b},
                                              {0xb2ce50f8, 0x3ca4fea6, 0xbb08ab49, 0xba9c3dcd,
                                               0xb981552d, 0xb80e022f, 0xb65159d3, 0xb43d3b66},
                                              {0x3caaabbb, 0xbbefa644, 0xb9aee101, 0x39468971,
                                               0x384fa824, 0x36f62b1b, 0x353cd877, 0x332f10b6},
                                              {0xb68c0a78, 0x3a811f0c, 0x397c385a, 0xb77f12a6,
                                               0xb6f9e73e, 0xb5a6a037, 0xb406a359, 0xb2009389},
                                              {0xbb075c77, 0x395458f0, 0xb88b54c3, 0xb5cab0ce,
                                               0x355c05a4, 0x34356e12, 0x329d864e, 0x309c949a},
                                              {0xb839901e, 0xb8d9cedb, 0x3717b224, 0x3566bd96,
                                               0xb366ea37, 0xb2a127e6, 0xb11f45f9, 0xaf2a4b20},
                                              {0x39908ca0, 0x386670d2, 0xb64b10c2, 0xb41b9e82,
                                               0x317f887d, 0x30e89890, 0x2f4eadd8, 0x2d2fa8ac},
                                              {0xb8637801, 0x3789c79e, 0xb58c2238, 0x3369df7a,
                                               0x3160ca2a, 0xaed63e4c, 0xae243b36, 0xac72bf14}};
};

/// the derivative of silu at −a
struct SiluSlopeTable {
  static constexpr float end = 20, square = -0x1.374bc6p-7F, linear = 0x1.1eb852p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x3fa3a4ba, 0x408e9cff, 0x40d51f4b,
                                       0x4111a1fe, 0x413e2079, 0x41734a69, 0x41996b9e};
  static constexpr TableRow coefficients[] = {{0x3f000000, 0xb14245cf, 0xbd1ff7e1, 0xbbecef71,
                                               0xba6ca040, 0xb89da50b, 0xb66d69b0, 0xb3b72190},
                                              {0xbf000000, 0xbe5f0a08, 0x3cdaa72e, 0x3bc267b3,
                                               0x3a4f5d28, 0x388f282b, 0x365cb33f, 0x33ad0e78},
                                              {0x310c0e1e, 0x3e162b1a, 0xbbe30835, 0xbb176e8a,
                                               0xb9b20f11, 0xb800aad0, 0xb5cbfcc7, 0xb322fb61},
                                              {0x3daaaaa2, 0xbc9a9f5b, 0x388751ba, 0x3a0f941c,
                                               0x38c63b91, 0x37183b70, 0x34f9b2e7, 0x324be074},
                                              {0x355c1e33, 0xbc79681b, 0x3a15f373, 0xb8a6f5da,
                                               0xb79edc1e, 0xb604e614, 0xb3e36a22, 0xb13e7148},
                                              {0xbc4ce469, 0x3bd87f8f, 0xb9737156, 0x36828f33,
                                               0x363e995d, 0x34b5a8a8, 0x32a41ebc, 0x300d9a0a},
                                              {0x37c56597, 0x3902e729, 0x38665df6, 0x35c79f1a,
                                               0xb4a80639, 0xb34903b2, 0xb142f41e, 0xaeae9614},
                                              {0x3ad4c00e, 0xba517499, 0xb7097ae4, 0xb50ffb64,
                                               0x32b94bbf, 0x31b74fe2, 0x2fc2ff04, 0x2d36e5fc},
                                              {0x38eb0eeb, 0x394c454f, 0x3444e27f, 0x34271070,
                                               0x3064d14c, 0xafeb1f9c, 0xae309ee2, 0xaba28f1a},
                                              {0xb9b381d5, 0x37e10c35, 0x335282b2, 0x3273953a,
                                               0xafa323d8, 0x2e9dc402, 0x2c3fb33f, 0x2a2252e4},
                                              {0x38bdf73d, 0xb7b6d964, 0xb42637dd, 0x32784ffe,
                                               0x2e95d56b, 0x2d0e0ef2, 0xaafc518e, 0xa6cda8a6},
                                              {0xb6c77976, 0x365d356a, 0x3295e733, 0x30d66915,
                                               0xade95fd8, 0x2b5a36d7, 0x288558c7, 0x2725cf29}};
};

/// mish(x)/x
struct MishTable {
  static constexpr float least = -6, end = 0x1.2cccccp3F, square = -0x1.1eb852p-5F,
                         linear = 0x1.851eb8p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0xbf0b5f9d, 0x3f5466ba, 0x40184270, 0x408990dd,
                                       0x40dce553, 0xc0b9ba49, 0xc076f828, 0xc002e7d7};
  static constexpr TableRow coefficients[] = {{0x3edb2c5e, 0x3f54c2f3, 0x3f7c588a, 0x3f7fe877,
                                               0x3f7fffde, 0x3b455367, 0x3caaf53e, 0x3df7dcfb},
                                              {0x3e998995, 0x3e5c831c, 0x3cd48278, 0x3a39b822,
                                               0x3686e6a0, 0x3b450720, 0x3ca92318, 0x3de718f5},
                                              {0x3d439bcd, 0xbdbc3e2f, 0xbcb6b512, 0xba35d881,
                                               0xb6765167, 0x3ac46e92, 0x3c257f67, 0x3d463a0e},
                                              {0xbce138d0, 0xbb9dc432, 0x3c3dbff9, 0x39eadabe,
                                               0x3615b940, 0x3a0228d1, 0x3b52f8b2, 0x3c33eef4},
                                              {0xbc57ca6a, 0x3c8a6261, 0xbb6fc79a, 0xb9620b41,
                                               0xb66429c1, 0x39009321, 0x3a3f9ef4, 0x39ba24a7},
                                              {0x3a73d35f, 0xbb2cfd9c, 0x39e2be21, 0x38b46a78,
                                               0x36f2c8f6, 0x37c8c626, 0x38f5077e, 0xba44bb15},
                                              {0x3b02a3af, 0xbb27f008, 0x396a6a4e, 0xb808d229,
                                               0xb711f2df, 0x36799e4d, 0x3727fe87, 0xb9b4406f},
                                              {0x3a57437c, 0x3a916a23, 0xb91f46ee, 0x374c75e1,
                                               0x36c4d56d, 0x351ac3e1, 0xb5e715fa, 0xb809a510},
                                              {0xba01c690, 0x38ac1cbb, 0x38441cf4, 0xb67a725a,
                                               0xb6173b5b, 0xb2da45a3, 0xb50dcc79, 0xb81cd4a8},
                                              {0xb892bba4, 0xb9180915, 0xb707771a, 0x3541cf93,
                                               0x34f8577b, 0x330586dc, 0xb4a04555, 0x37c8bb2f},
                                              {0x38323221, 0x37e3694b, 0x352992e2, 0xb385742c,
                                               0xb32973ab, 0xb1cbf284, 0xb37bc406, 0xb54da71a}};
};

/// the derivative of mish
struct MishSlopeTable {
  static constexpr float least = -6, end = 11, square = -0x1.eb851ep-6F, linear = 0x1.666666p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x3f88879f, 0x40327fcc, 0x409f1944,
                                       0x41000b0f, 0xc0b5c1f3, 0xc0800323, 0xbf98a196};
  static constexpr TableRow coefficients[] = {{0x3f19999a, 0x3f87b564, 0x3f83a079, 0x3f801b8d,
                                               0x3f80001c, 0xbc826252, 0xbd5c3366, 0x305f5bba},
                                              {0x3f23d70a, 0x3e1b10bf, 0xbd1d4c6d, 0xbac15c7a,
                                               0xb6d1e01b, 0xbc4c09c3, 0xbd0dc7ba, 0x3e88ad66},
                                              {0xbd449cc2, 0xbe76cb13, 0x3ca53b55, 0x3aa5ac6f,
                                               0x36c9070c, 0xbb92b378, 0xbbf53f45, 0x3e51a513},
                                              {0xbe3bdea1, 0x3db50191, 0xbaf1db30, 0xba36dbb7,
                                               0xb679a069, 0xba6b932d, 0x3a692cb5, 0x3d2ba726},
                                              {0xbaf2df29, 0x3d0bf873, 0xbb866bd5, 0x398f3090,
                                               0x35a1064b, 0xb8970744, 0x3a8f7e0d, 0xbca611d9},
                                              {0x3d402569, 0xbd0dc67c, 0x3b44c4fb, 0xb8a2233a,
                                               0x32c84e91, 0x3791e99d, 0x39cd8dbb, 0xbc819363},
                                              {0x3bc23f62, 0x3b214098, 0xba8c62cc, 0x377e70f0,
                                               0x3470caad, 0x370fd37a, 0x38bcf5ac, 0xbb5be034},
                                              {0xbc264fae, 0x3bea06d6, 0x392b781f, 0xb6178ff6,
                                               0xb5230d1f, 0x3610a03c, 0x377058a8, 0x3a8d813b},
                                              {0xbb1ff92e, 0xbb380640, 0x381d7a06, 0x35457cbe,
                                               0x34f5a55a, 0x32ff9c76, 0x329814d1, 0x3a7b8b8f},
                                              {0x3af36d34, 0xb9a187ea, 0xb7eab230, 0xb4c684ef,
                                               0xb432328d, 0x34e77f95, 0x34b2f747, 0x39853616},
                                              {0x3a036e5d, 0x39e7e201, 0x36e2b505, 0x33d495ac,
                                               0x33015e4c, 0xb44778e6, 0xb47e2a60, 0x36bbbe9a},
                                              {0xb980c831, 0xb8b3aa39, 0xb52d4520, 0xb22f2516,
                                               0xb1174928, 0x331f7990, 0xb3a0b293, 0xb6fb9690}};
};

}  // namespace palimpsest::PALIMPSEST_LEVEL
