#pragma once

#include <string_view>

/// Functions of other libraries without a counterpart of the same name, for docs/operations.md.
/// `tests/oracle/check_names.py` compares the rows with the libraries.
namespace palimpsest {

struct MissingFunctions {
  std::string_view names;  ///< separated by spaces
  std::string_view reason;
};

/// Differentiable functions of PyTorch on CPUs.
inline constexpr MissingFunctions missing_of_pytorch[] = {
    {"fft.* stft istft", "need complex numbers, which come later"},
    {"complex polar real imag conj conj_physical resolve_conj resolve_neg angle sgn "
     "view_as_complex "
     "view_as_real H mH cdouble cfloat chalf linalg.eig linalg.eigvals",
     "need complex numbers, which come later"},
    {"sparse.mm sparse.sampled_addmm",
     "`sparse_matmul` and `sampled_matmul`; sparse solves come later"},
    {"cat hstack vstack dstack column_stack unbind split_with_sizes tensor_split hsplit vsplit "
     "dsplit "
     "unsafe_chunk unsafe_split",
     "`concat`, `stack`, `unstack`, `split` and `chunk` along an axis"},
    {"expand expand_as view view_as reshape_as ravel t T mT atleast_1d atleast_2d atleast_3d "
     "broadcast_tensors contiguous clone positive alias_copy expand_copy permute_copy squeeze_copy "
     "t_copy "
     "transpose_copy unbind_copy unfold_copy unsqueeze_copy view_copy diagonal_copy narrow_copy "
     "split_with_sizes_copy",
     "`broadcast_to`, `reshape`, `transpose` and other views; values do not change, so nothing is "
     "copied"},
    {"as_strided as_strided_copy as_strided_scatter",
     "depend on the layout in memory, which is always row-major here"},
    {"select_scatter slice_scatter diagonal_scatter index_fill masked_fill masked_scatter put fill "
     "zero_ take_along_dim take narrow index_reduce",
     "`scatter`, `index_put`, `index_copy`, `gather`, `index_select`, `slice`, `scatter_reduce` "
     "and `where`"},
    {"__getitem__ _unsafe_masked_index _unsafe_masked_index_put_accumulate",
     "`x[...]`, `index_put`"},
    {"__radd__ __rdiv__ __rmatmul__ __rmod__ __rmul__ __rpow__ __rsub__ rsub sub mul div "
     "true_divide "
     "neg float_power to bfloat16 float double half",
     "operators, `subtract`, `multiply`, `divide`, `negate`, `pow` and `cast`"},
    {"mm bmm mv vdot inner addmm addmv addr addbmm baddbmm",
     "`matmul`, which is fused with the sum; `outer`"},
    {"linalg.inv_ex linalg.cholesky_ex linalg.solve_ex linalg.lu_factor_ex",
     "failures are errors here, not codes"},
    {"linalg.lu linalg.lu_factor linalg.lu_solve lu lu_solve lu_unpack cholesky_solve "
     "cholesky_inverse "
     "linalg.householder_product ormqr",
     "`solve`, `triangular_solve`, `inverse` and `qr` keep their factors for the adjoint"},
    {"linalg.solve_triangular linalg.vector_norm linalg.eigvalsh pinverse linalg.cond "
     "linalg.tensorinv linalg.tensorsolve linalg.vander linalg.polar linalg.matrix_sqrth "
     "svd_lowrank "
     "pca_lowrank",
     "`triangular_solve`, `norm` and `pinv`; the others are short compositions of `eigh`, `svd`, "
     "`solve` and `reshape`"},
    {"amax amin aminmax masked.amax masked.amin std var_mean var masked.var std_mean masked.std "
     "nanmean nansum "
     "mode "
     "msort renorm dist diff cov corrcoef trapezoid trapz cumulative_trapezoid cartesian_prod "
     "combinations diagflat sum_to_size nextafter frexp",
     "`max`, `min`, `variance`, `standard_deviation`, or a line of `sum`, `where`, `slice`, `sort` "
     "and `norm`"},
    {"nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d "
     "nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.max_pool3d "
     "nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d "
     "nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool1d "
     "nn.functional.adaptive_max_pool2d nn.functional.adaptive_max_pool3d "
     "nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d "
     "nn.functional.upsample_bilinear nn.functional.upsample_nearest",
     "`average_pool`, `max_pool`, `adaptive_average_pool`, `adaptive_max_pool`, "
     "`transposed_convolution` and `resize` take any number of axes"},
    {"nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.max_unpool3d "
     "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d "
     "nn.functional.local_response_norm nn.functional.bilinear nn.functional.embedding_bag "
     "nn.functional.pdist nn.functional.rrelu nn.functional.alpha_dropout "
     "nn.functional.feature_alpha_dropout nn.functional.dropout2d nn.functional.dropout3d "
     "nn.functional.multilabel_margin_loss _segment_reduce",
     "rarely used; compositions of `scatter`, `einsum`, `index_add`, `cdist`, `dropout` and "
     "`where`"},
    {"nn.functional.softmin masked.softmin nn.functional.normalize masked.normalize "
     "nn.functional.triplet_margin_with_distance_loss nn.functional.multi_head_attention_forward "
     "nn.functional.linear_cross_entropy",
     "`softmax(-x, axis)`, `norm`, `triplet_margin_loss`, `multi_head_attention` and "
     "`cross_entropy`"},
    {"special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 "
     "special.modified_bessel_i0 special.modified_bessel_i1 special.modified_bessel_k0 "
     "special.modified_bessel_k1 special.erfcx special.log_ndtr special.ndtri special.xlog1py",
     "`i0` and `i1`; the others come when a program needs them"},
    {"grid_sampler_2d grid_sampler_3d constant_pad_nd native_batch_norm native_group_norm "
     "native_layer_norm native_dropout_backward _native_batch_norm_legit _batch_norm_with_update "
     "_softmax_backward_data _upsample_bilinear2d_aa max_pool2d_with_indices_backward torch.ops.*",
     "internal to PyTorch"},
};

/// Functions of jax.numpy.
inline constexpr MissingFunctions missing_of_jax[] = {
    {"angle conj conjugate real imag iscomplex iscomplexobj isreal isrealobj sort_complex",
     "need complex numbers, which come later"},
    {"absolute fabs arccos arccosh arcsin arcsinh arctan arctan2 arctanh negative positive power "
     "true_divide mod degrees radians rint around amax amin clip var std",
     "`abs`, `acos` and so on, `negate`, `pow`, `divide`, `remainder`, `rad2deg`, `deg2rad`, "
     "`round`, "
     "`max`, `min`, `clamp`, `variance` and `standard_deviation`"},
    {"concatenate append insert hstack vstack dstack column_stack block array_split hsplit vsplit "
     "dsplit",
     "`concat`, `stack` and `split`"},
    {"array asarray astype copy empty_like empty fromfunction fromiter frombuffer fromfile "
     "fromstring "
     "from_dlpack frompyfunc vectorize",
     "`Tensor::from`, `cast`, files of [data](data.md), and C++"},
    {"expand_dims moveaxis rollaxis permute_dims matrix_transpose ravel atleast_1d atleast_2d "
     "atleast_3d broadcast_arrays broadcast_shapes ndim shape size",
     "`unsqueeze`, `movedim`, `permute`, `transpose`, `reshape`, `broadcast_to`, `rank` and "
     "`shape()`"},
    {"take_along_axis take put_along_axis put place extract compress delete fill_diagonal "
     "piecewise "
     "apply_along_axis apply_over_axes argwhere flatnonzero ix_ indices diag_indices "
     "diag_indices_from tril_indices tril_indices_from triu_indices triu_indices_from mask_indices "
     "unravel_index tri diagflat trim_zeros",
     "`gather`, `index_select`, `scatter`, `index_put`, `masked_select`, `where`, `nonzero`, "
     "`tril`, `triu` and "
     "`diag`"},
    {"allclose array_equal array_equiv isscalar iterable can_cast isdtype issubdtype promote_types "
     "result_type array_repr array_str get_printoptions set_printoptions printoptions savez load "
     "save "
     "einsum_path",
     "`isclose`, `same_bits`, `promote`, printing with `<<`, and files of [data](data.md)"},
    {"argpartition partition percentile nanpercentile digitize cumulative_prod cumulative_sum "
     "unique_all unique_counts unique_inverse unique_values histogram_bin_edges",
     "`topk`, `kthvalue`, `quantile`, `bucketize`, `cumprod`, `cumsum`, `unique` and `histogram`"},
    {"nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar",
     "`where(isnan(x), …)`, then the function; `nanmedian` and `nanquantile` exist"},
    {"average count_nonzero ptp diff ediff1d cov corrcoef trapezoid unwrap cbrt float_power "
     "divmod modf frexp nextafter spacing geomspace vdot inner matvec vecmat vander interp",
     "a line of other functions, such as `sum`, `slice`, `pow`, `matmul` and `searchsorted`"},
    {"bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not bitwise_or "
     "bitwise_right_shift bitwise_xor invert left_shift right_shift packbits unpackbits gcd lcm",
     "bits and divisors of integers have no derivatives"},
    {"intersect1d union1d setdiff1d setxor1d isin", "`unique`, `searchsorted` and `concat`"},
    {"convolve correlate poly polyadd polyder polydiv polyfit polyint polymul polysub polyval "
     "roots "
     "bartlett blackman hamming hanning kaiser histogram2d histogramdd",
     "`conv1d`, and numerical methods beyond a library of derivatives"},
};

}  // namespace palimpsest
