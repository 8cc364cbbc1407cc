"""What each family of operators declares. Written by scripts/write_operator_index.py; do not edit."""

# fmt: off
FAMILIES: dict[str, dict[str, str]] = {
    "create.creation": {
        "torch": (
            "as_tensor asarray empty empty_permuted empty_strided from_dlpack from_file from_numpy frombuffer "
            "full ones scalar_tensor tensor zeros "
        ),
    },
    "create.distribution_samples": {
        "Tensor torch": "multinomial poisson",
        "torch": "_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial",
    },
    "create.legacy": {
        "Tensor": "new type",
        "operators": "type_of",
        "sparse torch": (
            "BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
            "ShortTensor "
        ),
        "torch": "BoolTensor get_default_device set_default_device set_default_tensor_type",
    },
    "create.like": {
        "Tensor": "new_empty new_empty_strided new_full new_ones new_tensor new_zeros",
        "torch": "empty_like full_like ones_like zeros_like",
    },
    "create.random": {
        "Tensor": "bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_",
        "Tensor torch": "bernoulli",
        "operators": (
            "bernoulli_of_each bernoulli_of_one bernoulli_of_tensor cauchy exponential geometric log_normal "
            "normal_of_both normal_of_mean normal_of_std random random_between random_to uniform "
        ),
        "torch": "normal rand rand_like randint randint_like randn randn_like randperm",
    },
    "create.ranges": {
        "torch": (
            "arange broadcast_shapes broadcast_tensors cartesian_prod combinations complex eye linspace logspace "
            "meshgrid polar range tril_indices triu_indices vander "
        ),
    },
    "create.signal_windows": {
        "torch": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    },
    "index.gathering": {
        "Tensor": "index_add_ index_copy_ index_fill_ index_reduce_ put_ scatter_ scatter_add_ scatter_reduce_",
        "Tensor torch": (
            "gather index_add index_copy index_fill index_reduce index_select put scatter scatter_add "
            "scatter_reduce take take_along_dim "
        ),
        "operators": (
            "embedding_dense_backward gather_backward index_fill_inplace index_fill_number index_fill_tensor "
            "index_select_backward scatter_combined scatter_inplace scatter_number scatter_number_combined "
            "scatter_source sum_of_runs sum_of_runs_backward take_backward "
        ),
        "torch": "embedding",
    },
    "index.indexing": {
        "Tensor": "__getitem__ __setitem__",
        "Tensor torch": "index_put index_put_",
        "operators": "getitem index index_backward index_put_arrays setitem zero_of",
        "torch": "_unsafe_masked_index _unsafe_masked_index_put_accumulate",
    },
    "index.masking": {
        "Tensor": "heaviside_",
        "Tensor torch": (
            "clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip clip_ fmax fmin heaviside maximum "
            "minimum where "
        ),
        "operators": (
            "clamp_max_to_number clamp_max_to_tensor clamp_min_to_number clamp_min_to_tensor clamp_to_numbers "
            "clamp_to_tensors inside select_where where_method wide zero_where "
        ),
    },
    "index.selecting": {
        "Tensor": "masked_fill_ masked_scatter_",
        "Tensor torch": "argwhere masked_fill masked_scatter masked_select nonzero nonzero_static",
        "operators": (
            "is_among masked_fill_inplace masked_fill_number masked_fill_tensor masked_scatter_backward "
            "masked_select_backward nonzero_places "
        ),
        "torch": "isin unravel_index",
    },
    "linalg.decompositions": {
        "Tensor linalg torch": "cholesky cross qr svd",
        "Tensor torch": "inverse",
        "linalg operators": "eigh eigvalsh inv solve svdvals",
        "operators": "linalg_cholesky linalg_cross linalg_eigh linalg_inv linalg_qr linalg_solve linalg_svd",
    },
    "linalg.determinants": {
        "Tensor linalg torch": "det slogdet",
        "Tensor torch": "logdet",
        "operators": "det_frame det_gradient imag_part linalg_det linalg_slogdet",
    },
    "linalg.distance": {
        "Tensor": "renorm_",
        "Tensor torch": "renorm",
        "operators": "cdist_backward cdist_direct euclidean_dist grad_by_distance norm_over pdist_backward trilinear",
        "torch": "bilinear cdist cosine_similarity pairwise_distance pdist",
    },
    "linalg.einsum": {
        "Tensor torch": "kron",
        "torch": "einsum tensordot",
    },
    "linalg.equations": {
        "linalg": "vander",
        "linalg operators": "tensorinv tensorsolve",
        "torch": "chain_matmul frobenius_norm nuclear_norm",
    },
    "linalg.factored": {
        "Tensor linalg torch": "lu lu_solve",
        "linalg operators": "inv_ex ldl_factor ldl_factor_ex ldl_solve lu_factor lu_factor_ex solve_ex",
        "operators": (
            "linalg_inv_ex linalg_ldl_factor_ex linalg_ldl_solve linalg_lu linalg_lu_factor_ex linalg_lu_solve "
            "linalg_solve_ex unpacked_factors "
        ),
        "torch": "lu_unpack",
    },
    "linalg.householder": {
        "Tensor torch": "geqrf orgqr ormqr",
        "linalg operators": "householder_product",
        "operators": "linalg_householder_product",
    },
    "linalg.lobpcg": {
        "torch": "lobpcg",
    },
    "linalg.low_rank": {
        "torch": "pca_lowrank svd_lowrank",
    },
    "linalg.matmul": {
        "Tensor": "__matmul__ __rmatmul__ addbmm_ addmm_ addr_ baddbmm_",
        "Tensor torch": "addbmm addmm addmv addmv_ addr baddbmm bmm dot ger inner matmul mm mv outer vdot",
        "functional operators": "linear",
        "operators": "matmul_operator reflected_matmul",
    },
    "linalg.matrices": {
        "Tensor linalg torch": "matrix_exp matrix_power",
        "linalg": "matmul norm",
        "linalg operators": "eig eigvals matrix_norm multi_dot vecdot vector_norm",
        "operators": "linalg_eig linalg_matrix_exp linalg_matrix_norm",
    },
    "linalg.solving": {
        "Tensor torch": "cholesky_inverse cholesky_solve pinverse triangular_solve",
        "linalg": "diagonal",
        "linalg operators": "cholesky_ex cond lstsq matrix_rank pinv solve_triangular",
        "operators": (
            "linalg_cholesky_ex linalg_lstsq linalg_matrix_rank linalg_pinv linalg_solve_triangular "
            "solve_with_triangular "
        ),
    },
    "math.arithmetic": {
        "Tensor": (
            "__add__ __iadd__ __imul__ __isub__ __mul__ __radd__ __rmul__ __rsub__ __sub__ add_ addcdiv_ addcmul_ "
            "lerp_ mul_ multiply_ sub_ subtract_ "
        ),
        "Tensor torch": "add addcdiv addcmul lerp mul multiply sub subtract",
        "operators": (
            "add_number div_number lerp_by_number lerp_by_tensor mul_number reflected_sub rsub_number rsub_tensor "
            "sub_number "
        ),
        "torch": "rsub",
    },
    "math.bessel": {
        "operators special": (
            "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 "
            "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
            "spherical_bessel_j0 "
        ),
    },
    "math.comparison": {
        "Tensor": (
            "__and__ __eq__ __ge__ __gt__ __iand__ __ilshift__ __invert__ __ior__ __irshift__ __ixor__ __le__ "
            "__lshift__ __lt__ __ne__ __or__ __rand__ __rlshift__ __ror__ __rrshift__ __rshift__ __rxor__ __xor__ "
            "bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ eq_ ge_ "
            "greater_ greater_equal_ gt_ le_ less_ less_equal_ logical_and_ logical_not_ logical_or_ logical_xor_ "
            "lt_ ne_ not_equal_ "
        ),
        "Tensor torch": (
            "bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor eq ge greater "
            "greater_equal gt isfinite isinf isnan isneginf isposinf isreal le less less_equal logical_and "
            "logical_not logical_or logical_xor lt nan_to_num nan_to_num_ ne not_equal signbit "
        ),
        "operators": (
            "eq_by_number eq_by_tensor ge_by_number ge_by_tensor gt_by_number gt_by_tensor invert le_by_number "
            "le_by_tensor lt_by_number lt_by_tensor ne_by_number ne_by_tensor reflected_left_shift "
            "reflected_right_shift "
        ),
    },
    "math.division": {
        "Tensor": (
            "__div__ __floordiv__ __idiv__ __ifloordiv__ __imod__ __itruediv__ __mod__ __rdiv__ __rfloordiv__ "
            "__rmod__ __rtruediv__ __truediv__ div_ divide_ floor_divide_ fmod_ remainder_ true_divide_ "
        ),
        "Tensor torch": "div divide floor_divide fmod remainder true_divide",
        "operators": (
            "div_rounded floor_divide_by_number floor_divide_by_tensor fmod_by_number fmod_by_tensor "
            "remainder_by_number remainder_by_tensor remainder_of_number rtruediv "
        ),
    },
    "math.fourier": {
        "fft operators": (
            "fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft "
            "irfft2 irfftn rfft rfft2 rfftfreq rfftn "
        ),
        "operators": "fft_c2c fft_c2r fft_c2r_backward fft_r2c",
    },
    "math.pairwise": {
        "Tensor": "arctan2_ atan2_ copysign_ hypot_ nextafter_",
        "Tensor special torch": "xlogy",
        "Tensor torch": (
            "arctan2 atan2 copysign dist frexp gcd gcd_ hypot lcm lcm_ ldexp ldexp_ logaddexp logaddexp2 "
            "nextafter xlogy_ "
        ),
        "operators": (
            "copysign_by_number copysign_by_tensor xlog1py_by_number xlog1py_by_tensor xlog1py_of_number "
            "xlogy_by_number xlogy_by_tensor xlogy_of_number "
        ),
        "operators special": "xlog1py",
    },
    "math.pointwise": {
        "Tensor": "__abs__ __neg__ __pos__ absolute_ sgn_ sign_",
        "Tensor special torch": "exp2 expm1 log1p logit round sinc",
        "Tensor torch": (
            "abs abs_ absolute acos acos_ acosh acosh_ angle arccos arccos_ arccosh arccosh_ arcsin arcsin_ "
            "arcsinh arcsinh_ arctan arctan_ arctanh arctanh_ asin asin_ asinh asinh_ atan atan_ atanh atanh_ "
            "ceil ceil_ conj conj_physical conj_physical_ cos cos_ cosh cosh_ deg2rad deg2rad_ exp exp2_ exp_ "
            "expm1_ fix fix_ floor floor_ frac frac_ log log10 log10_ log1p_ log2 log2_ log_ logit_ neg neg_ "
            "negative negative_ positive rad2deg rad2deg_ reciprocal reciprocal_ round_ rsqrt rsqrt_ sgn sigmoid "
            "sigmoid_ sign sin sin_ sinc_ sinh sinh_ sqrt sqrt_ tan tan_ tanh tanh_ trunc trunc_ "
        ),
        "operators": (
            "conjugate derivative_of_sinc logit_backward round_to_decimals round_to_integer sigmoid_backward "
            "tanh_backward "
        ),
        "special": "expit",
        "torch": "_neg_view",
    },
    "math.polynomials": {
        "operators special": (
            "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
            "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p "
            "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
            "shifted_chebyshev_polynomial_w "
        ),
    },
    "math.powers": {
        "Tensor": "__ipow__ __pow__ __rpow__ float_power_ pow_",
        "Tensor torch": "float_power pow square square_",
        "operators": "number_pow pow_number pow_tensor power_backward",
    },
    "math.short_time_fourier": {
        "Tensor torch": "istft stft",
    },
    "math.special": {
        "Tensor": "digamma_ erfinv_ igamma_ igammac_ lgamma_ mvlgamma_ polygamma_",
        "Tensor special torch": "digamma erf erfc erfinv i0 polygamma",
        "Tensor torch": "erf_ erfc_ i0_ igamma igammac lgamma mvlgamma",
        "operators": "normal_distribution polygamma_method polygamma_of",
        "operators special": "entr erfcx i0e i1 i1e log_ndtr ndtr ndtri zeta",
        "special": "gammainc gammaincc gammaln multigammaln psi",
    },
    "memory.conversion": {
        "Tensor": (
            "bfloat16 bool byte cdouble cfloat chalf char cuda double float half int long pin_memory short to "
            "to_device type_as xpu "
        ),
        "operators": "to_dtype",
    },
    "memory.copying": {
        "Tensor": "apply_ contiguous copy_ fill_diagonal_ map2_ map_ resize resize_ resize_as set_ sum_to_size",
        "Tensor torch": "clone fill_ resize_as_ zero_",
        "operators": "copy fill_diagonal fill_tensor full_of_number full_of_tensor zero",
        "torch": "fill",
    },
    "memory.inspection": {
        "Tensor": "is_set_to",
        "Tensor torch": "allclose equal is_distributed is_nonzero is_same_size isclose",
        "torch": (
            "get_device is_complex is_conj is_floating_point is_inference is_neg is_signed is_storage is_tensor "
            "numel resolve_conj resolve_neg result_type typename "
        ),
    },
    "memory.storage_views": {
        "Tensor torch": "as_strided as_strided_ as_strided_scatter detach detach_ imag real",
        "operators": "as_strided_backward as_strided_gather forward_primal",
        "torch": "view_as_complex view_as_real",
    },
    "memory.subclassing": {
        "Tensor": "_make_subclass _make_wrapper_subclass as_subclass",
    },
    "memory.swapping": {
        "Tensor": "module_load",
    },
    "memory.view_functions": {
        "Tensor": "_view_func _view_func_unsafe",
    },
    "nn.activation": {
        "Tensor functional torch": "hardshrink relu relu_",
        "functional": "elu_ hardsigmoid_ hardswish_ hardtanh_ leaky_relu_ mish_ sigmoid silu_ tanh",
        "functional operators": "elu gelu hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish silu softplus softshrink",
        "functional torch": "celu celu_ selu selu_ threshold threshold_",
        "operators": (
            "celu_in_place celu_of_input elu_backward elu_double_backward elu_in_place gelu_backward "
            "gelu_curvature hardshrink_backward hardsigmoid_backward hardswish_backward hardswish_double_backward "
            "hardtanh_backward leaky_relu_backward leaky_relu_in_place logsigmoid_backward mish_backward "
            "mish_curvature silu_backward silu_double_backward softplus_backward softplus_double_backward "
            "softshrink_backward threshold_backward "
        ),
    },
    "nn.attention": {
        "operators": "attention_in_blocks blocked_attention blocked_attention_gradients",
    },
    "nn.binary_losses": {
        "operators": "bce_with_logits bce_with_logits_of_floats binary_cross_entropy binary_cross_entropy_backward",
        "torch": "binary_cross_entropy_with_logits",
    },
    "nn.convolution": {
        "operators": "conv_input_grad conv_weight_grad",
        "torch": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution",
    },
    "nn.ctc": {
        "operators": "ctc_loss_backward ctc_loss_of",
        "torch": "ctc_loss",
    },
    "nn.dispatched_softmax": {
        "operators": "safe_softmax_of",
        "torch": "_log_softmax_backward_data _safe_softmax _softmax_backward_data",
    },
    "nn.dropout": {
        "aten operators": "native_dropout_backward",
        "torch": (
            "alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_ "
            "feature_dropout feature_dropout_ native_dropout "
        ),
    },
    "nn.fractional_pooling": {
        "functional operators": "fractional_max_pool2d fractional_max_pool3d",
        "operators": (
            "fractional_max_pool2d_backward fractional_max_pool2d_of fractional_max_pool3d_backward "
            "fractional_max_pool3d_of "
        ),
    },
    "nn.gating": {
        "Tensor functional torch": "prelu",
        "functional operators": "glu",
        "functional torch": "rrelu rrelu_",
        "operators": "glu_backward prelu_backward prelu_kernel rrelu_backward rrelu_mean rrelu_with_noise",
    },
    "nn.grid_sampling": {
        "functional operators": "affine_grid grid_sample",
        "operators": (
            "affine_grid_backward grid_pixels grid_sampler_2d_of grid_sampler_3d_of grid_sampler_gradients "
            "grid_scattered grid_weights "
        ),
        "torch": "affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d",
    },
    "nn.images": {
        "aten operators": (
            "_upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_lanczos2d_aa _upsample_nearest_exact1d "
            "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_bicubic2d upsample_bilinear2d "
            "upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d "
        ),
        "functional": "unfold",
        "functional operators": "fold",
        "operators": (
            "col2im im2col resample_gradient upsample_bicubic2d_aa upsample_bilinear2d_aa upsample_lanczos2d_aa "
            "upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d "
        ),
        "torch": "channel_shuffle pixel_shuffle pixel_unshuffle",
    },
    "nn.loss": {
        "functional operators": "one_hot",
        "operators": (
            "cosine_embedding_loss cross_entropy hinge_embedding_loss huber_loss kl_div l1_loss "
            "margin_ranking_loss mse_loss multi_margin_loss multi_margin_loss_backward multilabel_margin_loss "
            "multilabel_margin_loss_backward multilabel_margin_loss_forward multilabel_margin_slopes nll_loss "
            "nll_loss2d_backward nll_loss2d_of nll_loss_backward nll_loss_of poisson_nll_loss reduced "
            "shared_difference smooth_l1_loss soft_margin_loss triplet_margin_loss "
        ),
    },
    "nn.normalization": {
        "aten operators": "_batch_norm_no_update _batch_norm_with_update _native_batch_norm_legit_no_training",
        "operators": "average_statistics batch_norm_gradients group_norm_gradients layer_norm_gradients",
        "torch": (
            "_native_batch_norm_legit _weight_norm batch_norm group_norm layer_norm native_batch_norm "
            "native_group_norm native_layer_norm norm_except_dim rms_norm "
        ),
    },
    "nn.optimization": {
        "torch": "_count_steps_ _fused_update_",
    },
    "nn.padding": {
        "operators": (
            "pad reflection_pad1d reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward "
            "reflection_pad3d reflection_pad3d_backward replication_pad1d replication_pad1d_backward "
            "replication_pad2d replication_pad2d_backward replication_pad3d replication_pad3d_backward "
        ),
        "torch": "constant_pad_nd",
    },
    "nn.pooling": {
        "aten operators": "max_pool2d_with_indices_backward max_pool3d_with_indices_backward",
        "functional operators": (
            "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d avg_pool2d "
            "avg_pool3d max_pool2d_with_indices max_pool3d_with_indices "
        ),
        "operators": (
            "adaptive_avg_pool2d_backward adaptive_avg_pool2d_of adaptive_avg_pool3d_backward "
            "adaptive_avg_pool3d_of adaptive_max_pool2d_backward adaptive_max_pool2d_of "
            "adaptive_max_pool3d_backward adaptive_max_pool3d_of at_indices avg_pool2d_backward avg_pool2d_of "
            "avg_pool3d_backward avg_pool3d_of "
        ),
        "torch": (
            "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d max_pool1d max_pool1d_with_indices max_pool2d "
            "max_pool3d "
        ),
    },
    "nn.recurrence": {
        "operators": "recurrent_layer recurrent_layer_gradients runs_as_one_layer",
    },
    "nn.softmax": {
        "Tensor special torch": "log_softmax logsumexp softmax",
        "operators": "log_softmax_backward log_softmax_of logsumexp_backward softmax_backward softmax_of",
    },
    "nn.unpooling": {
        "functional operators": "max_unpool1d max_unpool2d max_unpool3d",
        "operators": "max_unpool2d_of max_unpool3d_of",
    },
    "reduce.hashing": {
        "Tensor torch": "hash_tensor",
    },
    "reduce.histograms": {
        "Tensor torch": "histogram",
        "torch": "histogramdd",
    },
    "reduce.moments": {
        "Tensor torch": "norm std var",
        "operators": "linalg_vector_norm std_correction std_mean_correction var_correction var_mean_correction",
        "torch": "std_mean var_mean",
    },
    "reduce.reduction": {
        "Tensor torch": "all amax amin aminmax any argmax argmin count_nonzero max mean min nanmean nansum prod sum",
        "operators": (
            "in_dtype_of kept max_all max_dim mean_all mean_dim min_all min_dim prod_all prod_dim selected_values "
            "spread sum_all sum_dim value_selecting_backward "
        ),
    },
    "reduce.samples": {
        "Tensor torch": "corrcoef cov",
        "torch": "cumulative_trapezoid gradient trapezoid trapz",
    },
    "reduce.segments": {
        "operators": "segment_of_each",
        "torch": "segment_reduce",
    },
    "reduce.sorting": {
        "Tensor": "cumprod_ cumsum_",
        "Tensor torch": (
            "argsort bincount cummax cummin cumprod cumsum histc kthvalue logcumsumexp median mode msort "
            "nanmedian nanquantile quantile sort topk unique unique_consecutive "
        ),
        "operators": (
            "cumprod_backward in_float32 median_all median_dim nanmedian_all nanmedian_dim others_product "
            "reversed_cumsum searchsorted_tensor sort_default sort_stable unique_all unique_dim unique_runs "
        ),
        "torch": "bucketize searchsorted",
    },
    "shape.diagonals": {
        "Tensor": "tril_ triu_",
        "Tensor torch": "diag diag_embed diagflat diff trace tril triu",
    },
    "shape.joining": {
        "Tensor": "repeat",
        "Tensor torch": "flip fliplr flipud repeat_interleave roll rot90 tile",
        "operators": "block_diagonal flip_method repeat_method tile_method",
        "torch": (
            "_chunk_cat atleast_1d atleast_2d atleast_3d block_diag cat column_stack concat concatenate dstack "
            "hstack row_stack stack vstack "
        ),
    },
    "shape.parts": {
        "Tensor": "unfold",
        "Tensor torch": (
            "chunk diagonal diagonal_scatter dsplit hsplit narrow narrow_copy select select_scatter slice_scatter "
            "split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit "
        ),
        "operators": (
            "diagonal_backward select_backward slice slice_backward split_method split_size stack_in_order "
            "unfold_backward zeros_like_shape "
        ),
    },
    "shape.view": {
        "Tensor": (
            "H T expand expand_as mH mT reshape_as squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_ view "
            "view_as "
        ),
        "Tensor torch": (
            "adjoint broadcast_to flatten moveaxis movedim permute ravel reshape squeeze swapaxes swapdims t "
            "transpose unflatten unsqueeze "
        ),
        "operators": (
            "alias broadcast_to_method expand_method permute_method reshape_alias reshape_method squeeze_all "
            "squeeze_dim squeeze_dims unsafe_view view_shape "
        ),
    },
    "shape.view_copies": {
        "operators": "squeeze_all_copy squeeze_dim_copy squeeze_dims_copy view_shape_copy",
        "torch": (
            "alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy slice_copy "
            "split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy "
            "unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy "
        ),
    },
    "sparse.creation": {
        "torch": (
            "sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor "
            "sparse_csr_tensor "
        ),
    },
    "sparse.functions": {
        "Tensor torch": "smm sspaddmm",
        "operators": (
            "_on_diagonals _sparse_addmm _sparse_log_softmax _sparse_log_softmax_backward _sparse_softmax "
            "_sparse_softmax_backward _sparse_sparse_matmul _sparse_sum _sparse_sum_backward "
            "embedding_sparse_backward gather_sparse_backward sparse_product_gradient "
        ),
        "operators sparse": "sampled_addmm",
        "sparse": "addmm log_softmax mm softmax spdiags sum",
        "torch": "dsmm hsmm hspmm saddmm spmm",
    },
    "sparse.gradcheck": {
        "sparse": "as_sparse_gradcheck",
    },
    "sparse.layouts": {
        "Tensor": (
            "_coalesced_ _indices _nnz _values ccol_indices coalesce col_indices crow_indices dense_dim indices "
            "is_coalesced row_indices sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ to_dense "
            "to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr values "
        ),
        "Tensor torch": "resize_as_sparse_",
        "operators": (
            "coalesced compressed_of_parts coo_of_parts elements_at in_layout stored_values to_dense_from "
            "to_sparse_bsc_from to_sparse_bsr_from to_sparse_csc_from to_sparse_csr_from to_sparse_dims "
            "to_sparse_whole with_values "
        ),
    },
}
