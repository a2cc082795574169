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
  static constexpr float end = 0x1.166666p4F, square = -0x1.47ae14p-8F, linear = 0x1.08f5c2p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x4032433a, 0x409beae4, 0x40e1d26c,
                                       0x4115a9cb, 0x413c86e8, 0x4165ea21, 0x4188faf4};
  static constexpr TableRow coefficients[] = {{0x3f000000, 0x3d6e1017, 0x3bf8ed43, 0x3a619eb5,
                                               0x38b5a4f6, 0x3700124d, 0x351a3b7a, 0x331d4d93},
                                              {0xbe800000, 0xbd6039f8, 0xbbf70929, 0xba616cff,
                                               0xb8b5a0ef, 0xb700120d, 0xb51a3b75, 0xb31d4d94},
                                              {0xb2bb597a, 0x3cc62974, 0x3b73484d, 0x39e109a6,
                                               0x383598e3, 0x36801190, 0x349a3b6e, 0x329d4d9b},
                                              {0x3caaaba1, 0xbbc8c55d, 0xba9d3e43, 0xb915823a,
                                               0xb7720b74, 0xb5aac06e, 0xb3cda396, 0xb1d1bb6d},
                                              {0xb67c6f92, 0x3a355952, 0x399383ef, 0x38147b70,
                                               0x3671df92, 0x34aabc60, 0x32cda390, 0x30d1bbd0},
                                              {0xbb077a9e, 0x39079a73, 0xb84ce24e, 0xb6ea0452,
                                               0xb54177db, 0xb388db3d, 0xb1a4f73b, 0xafa86fd9},
                                              {0xb8271f4d, 0xb8abe557, 0x36d5f123, 0x3599d9a7,
                                               0x33fcbdd8, 0x3231648e, 0x3053b9af, 0x2e55713e},
                                              {0x398d5bbe, 0x377ad045, 0x34d0f915, 0xb413e92d,
                                               0xb2a366ae, 0xb0f45820, 0xaf199ef6, 0xad23dec4},
                                              {0xb850d0e6, 0xb6a9b47b, 0x3484aec6, 0x32cbbdbb,
                                               0x308b0172, 0x2e762f90, 0x2c154a1c, 0xa6752d8f},
                                              {0xb5b2b38d, 0xb62bb09b, 0x3419dd9c, 0xae32a1a0,
                                               0xb00c49e7, 0xae67ad2e, 0xac963ae5, 0xaaa309a0}};
};

/// softplus(−a)
struct SoftplusTable {
  static constexpr float end = 0x1.133334p4F, square = -0x1.47ae14p-8F, linear = 0x1.0a3d7p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x40315ad2, 0x409b16c1, 0x40e09081,
                                       0x4114c90e, 0x413b5ac8, 0x41646309, 0x41877666};
  static constexpr TableRow coefficients[] = {{0x3f317218, 0x3d78a933, 0x3c003411, 0x3a6ac272,
                                               0x38bfe5aa, 0x3709cef8, 0x3529af4b, 0x333e2a87},
                                              {0xbf000000, 0xbd714376, 0xbbff67fc, 0xba6aa78b,
                                               0xb8bfe36b, 0xb709ced3, 0xb529af48, 0xb33e2a88},
                                              {0x3dffff93, 0x3ce30d7d, 0x3b7d6a57, 0x39ea71cb,
                                               0x383fdeee, 0x3689ce8c, 0x34a9af47, 0x32be2a8f},
                                              {0x37270ac7, 0xbc058874, 0xbaa64fd6, 0xb91c042e,
                                               0xb77fc781, 0xb5b7bcf5, 0xb3e23e2e, 0xb1fd8cc4},
                                              {0xbbac638d, 0x3aca0ab0, 0x39a11b05, 0x381b7362,
                                               0x367fb010, 0x34b7ba1f, 0x32e23cd8, 0x30fd8ce6},
                                              {0x391e2a8f, 0xb9120bdc, 0xb870b0d6, 0xb6f71ff7,
                                               0xb54ca566, 0xb3934326, 0xb1b57d40, 0xafcb7fd1},
                                              {0x38c55a8d, 0xb7fda89a, 0x3712ec76, 0x35a1420b,
                                               0x3405aeea, 0x323f1a36, 0x30693ecc, 0x2e81e65d},
                                              {0x3982c81f, 0x363c0329, 0xb4bf79f1, 0xb43a83fb,
                                               0xb2af3512, 0xb10304d1, 0xaf27ee62, 0xad410669},
                                              {0xb92a2063, 0xb702a245, 0x34a16c70, 0x328f4447,
                                               0x3086a614, 0x2e89c8e7, 0x2c3db948, 0x29d61a15},
                                              {0x380f0dd1, 0xb5bb8134, 0x33ba2b16, 0xb143a31f,
                                               0xb01ccf8b, 0xae787c26, 0xaca397c3, 0xaabe3cda}};
};

/// a·Φ(−a)
struct GeluTable {
  static constexpr float end = 0x1.666666p2F, square = 0x1.eb851ep-4F, linear = 0x1.51eb86p-1F;
  static constexpr float slope = 0;
  static constexpr TableRow centers = {0x00000000, 0x3fcfec21, 0x401fa486, 0x404f38d5,
                                       0x40797a81, 0x408ff1e1, 0x40a1abe6, 0x40b19eeb};
  static constexpr TableRow coefficients[] = {{0x00000000, 0x3dad7a13, 0x3c80e75c, 0x3aff8fa8,
                                               0x39462378, 0x378140a0, 0x35940dc7, 0x33a9a082},
                                              {0x3f000000, 0xbdf7fb48, 0xbd1bc3d3, 0xbbcc3428,
                                               0xba3fcca1, 0xb890c634, 0xb6ba83d3, 0xb4eaf45e},
                                              {0xbecc422c, 0x3d0b7cbb, 0x3d19b17c, 0x3c12afb7,
                                               0x3aad10c4, 0x3919ff0d, 0x3761a617, 0x359d6499},
                                              {0x361e0a45, 0x3d20fed3, 0xbc868429, 0xbbf1fc96,
                                               0xbabeca2b, 0xb94d941b, 0xb7adda6d, 0xb6078007},
                                              {0x3d881dd9, 0xbd08c24a, 0xba231e72, 0x3b699835,
                                               0x3a8c78af, 0x393f4602, 0x37be9766, 0x3627ee99},
                                              {0x391d7fb8, 0x3bb9ad2d, 0x3b8e5076, 0xba3a0601,
                                               0xba0bac22, 0xb901e4dc, 0xb79caf79, 0xb61df0f1},
                                              {0xbc2a9cb4, 0x3b3dfe6c, 0xbaf9688a, 0xb976e8ba,
                                               0x391e8010, 0x387d8ae1, 0x374b94c5, 0x35f88272},
                                              {0x3a32302c, 0xbb275e11, 0x398769fd, 0x3999f0da,
                                               0xb7e8ce2a, 0xb7c88a5f, 0xb6ac4213, 0xb5516214},
                                              {0x3a3d1e32, 0xba403d92, 0x39b37acd, 0xb80d4dd0,
                                               0xb824abd0, 0x35b65810, 0x365907ea, 0x3576f1c2}};
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
  static constexpr TableRow centers = {0x00000000, 0x401945e5, 0x40878351, 0x40c6d8e5,
                                       0x4105ead9, 0x412c2b7a, 0x4157c62a, 0x4185677f};
  static constexpr TableRow coefficients[] = {{0x00000000, 0x3e4ced73, 0x3d77a176, 0x3c4b5760,
                                               0x3afe2fc7, 0x396f6a60, 0x379d4c7d, 0x35802c4d},
                                              {0x3f000000, 0xbdcc7813, 0xbd399eb9, 0xbc2a3643,
                                               0xbadfc224, 0xb9592945, 0xb791a276, 0xb570f93b},
                                              {0xbe800000, 0xb95746bb, 0x3c73b081, 0x3b88cf10,
                                               0x3a414909, 0x38c2e71a, 0x3705f863, 0x34e199e5},
                                              {0xb2ce50f8, 0x3c7bca60, 0xbb13ff89, 0xba893c3b,
                                               0xb958f95d, 0xb7e62e74, 0xb623128b, 0xb40c25b6},
                                              {0x3caaabbb, 0xbbd11244, 0xb915bb87, 0x3935e88b,
                                               0x38300774, 0x36c87aa6, 0x351385ff, 0x3301e76d},
                                              {0xb68c0a78, 0x3a9678b4, 0x39350178, 0xb788fe5a,
                                               0xb6d74a33, 0xb5889053, 0xb3d36266, 0xb1c04825},
                                              {0xbb075c77, 0x3907e034, 0xb86fefae, 0xb4dbdb9a,
                                               0x354b5e63, 0x34166bc7, 0x3274380c, 0x305db410},
                                              {0xb839901e, 0xb71e2c8a, 0x3683f7e0, 0x354242d0,
                                               0xb3153248, 0xb286c0a1, 0xb1097ca0, 0xaf1c8ce6},
                                              {0x39908ca0, 0x38a95c03, 0xb697f96c, 0xb32f89b1,
                                               0x32510a27, 0x30c7c613, 0x2ecf062c, 0xaa3423c8},
                                              {0xb8637801, 0x3789f9d6, 0xb58784b2, 0x336d962f,
                                               0x317157c7, 0xaee2b5da, 0xae254fe8, 0xac733d9c}};
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
