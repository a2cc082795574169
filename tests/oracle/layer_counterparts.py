"""PyTorch's counterparts of losses, normalisation, attention, convolutions and recurrent cells."""

import math

import torch
import torch.nn.functional as F
from shared import places, pull_back, slope, slopes
from torch.nn.attention import SDPBackend, sdpa_kernel

# Losses of classes -------------------------------------------------------------------------------


def cross_entropy(**options):
    return lambda x, c: F.cross_entropy(x, places(c), **options)


def nll(**options):
    return lambda x, c: F.nll_loss(x, places(c), **options)


def smoothed_nll(x, c):
    """Cross entropy along axis 1 per position, with label smoothing 0.1; ignores class 3."""
    c = places(c)
    chosen = -x.gather(1, c.unsqueeze(1)).squeeze(1)
    return torch.where(c == 3, 0, 0.9 * chosen - 0.1 * x.mean(1))


def weighted_slope(loss):
    return lambda x, w, c: slope(loss(x, c) * w, x)


PIXELS = {"reduction": "none", "label_smoothing": 0.1, "ignore_index": 3}
ROWS = {
    "cross_entropy": cross_entropy(),
    "cross_entropy: sum": cross_entropy(reduction="sum"),
    "cross_entropy: smoothed": cross_entropy(label_smoothing=0.2),
    "cross_entropy: ignoring a class": cross_entropy(ignore_index=3),
    "cross_entropy: of pixels": cross_entropy(**PIXELS),
    "log_softmax: cross entropy with probabilities": lambda x, t: F.cross_entropy(x, t),
    "log_softmax: smoothed probabilities":
        lambda x, t: F.cross_entropy(x, t, reduction="none", label_smoothing=0.1),
    "cross_entropy_adjoint: mean": weighted_slope(cross_entropy()),
    "cross_entropy_adjoint: ignoring": weighted_slope(cross_entropy(ignore_index=3)),
    "cross_entropy_adjoint: of pixels": weighted_slope(cross_entropy(**PIXELS)),
    "nll": nll(),
    "nll: smoothed, ignoring": smoothed_nll,
    "nll_adjoint: mean": weighted_slope(nll()),
    "nll_adjoint: smoothed, ignoring": weighted_slope(smoothed_nll),
    "cross_entropy, sum": cross_entropy(reduction="sum"),
    "cross_entropy, smoothed": cross_entropy(label_smoothing=0.25),
    "cross_entropy, ignoring": cross_entropy(ignore_index=1),
    "cross_entropy, ignoring, each": cross_entropy(ignore_index=1, reduction="none"),
    "cross_entropy of weighted logits, ignoring":
        lambda x, w, c: F.cross_entropy(x * w, c, ignore_index=1),
    "nll, sum": nll(reduction="sum"),
    "nll, ignoring": nll(ignore_index=1),
    "nll, ignoring, each": nll(ignore_index=1, reduction="none"),
}

# Normalisation -----------------------------------------------------------------------------------


def batch_norm_with_statistics(x, w, b):
    axes = [axis for axis in range(x.ndim) if axis != 1]
    y = F.batch_norm(x, None, None, w, b, training=True)
    return y * 0.5 + (x.mean(axes) ** 2).sum() + (x.var(axes, correction=0) ** 2).sum()


def per_channel(v):
    return v[:, None, None]


def group(x, w, b):
    return F.group_norm(x, 2, w, b)


def batch_norm(x):
    return F.batch_norm(x, None, None, training=True)


ROWS |= {
    "layer_norm: weight": lambda x, w: F.layer_norm(x, (7,), w),
    "layer_norm: two axes, many rows": lambda x, w, b: F.layer_norm(x, (2, 3), w, b),
    "layer_norm: no rows": lambda x, w, b: F.layer_norm(x, (7,), w, b),
    "rms_norm: weight": lambda x, w: F.rms_norm(x, (7,), w, 1e-6),
    "group_norm: two groups": group,
    "group_norm: no spatial axis": group,
    "group_norm: plain": lambda x: F.group_norm(x, 2),
    "group_norm: as instance_norm": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
    "batch_norm: images": batch_norm_with_statistics,
    "batch_norm: rows": batch_norm_with_statistics,
    "batch_norm: plain": batch_norm,
    "batch_norm: more channels than a batch of columns": batch_norm,
    "multiply: as batch_norm with statistics given":
        lambda x, m, v, w, b: (x - per_channel(m)) / torch.sqrt(per_channel(v) + 1e-5) * per_channel(w) + per_channel(b),
    "normalization_adjoint: layer_norm": slopes(lambda x, w, b: F.layer_norm(x, (7,), w, b), share=0.01),
    "normalization_adjoint: rms_norm": slopes(lambda x, w: F.rms_norm(x, (7,), w, 1e-6), share=0.01),
    "normalization_adjoint: group_norm": slopes(group, share=0.01),
    "normalization_adjoint: batch_norm": slopes(batch_norm_with_statistics, share=0.01),
    "normalization_adjoint: batch_norm of rows": slopes(batch_norm_with_statistics, share=0.01),
}

# Attention ---------------------------------------------------------------------------------------


def attention(causal=False, scale=None):
    def attend(q, k, v, mask=None):
        if causal:
            seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(k.shape[-2] - q.shape[-2])
            if mask is None:
                mask = seen
            elif mask.dtype == torch.bool:
                mask = mask & seen
            else:
                mask = torch.where(seen, mask, -math.inf)
        with sdpa_kernel(SDPBackend.MATH):  # the only one with second derivatives
            grouped = q.ndim > 2 and q.shape[-3] != k.shape[-3]
            return F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=grouped)
    return attend


def four_heads(x, query, key, value, output, query_bias, output_bias):
    def heads(y):
        return y.unflatten(-1, (4, -1)).transpose(-2, -3)
    y = attention(causal=True)(heads(x @ query + query_bias), heads(x @ key), heads(x @ value))
    return y.transpose(-2, -3).flatten(-2) @ output + output_bias


def grouped_heads(x, query, key, value, output):
    def heads(y, count):
        return y.unflatten(-1, (count, -1)).transpose(-2, -3)
    y = attention()(heads(x @ query, 4), heads(x @ key, 2), heads(x @ value, 2))
    return y.transpose(-2, -3).flatten(-2) @ output


def rotary(x, positions=None, offset=0, base=10000.0, interleaved=False):
    """Turns pairs of elements as complex numbers."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    count = x.shape[-1] // 2
    if positions is None:
        positions = torch.arange(x.shape[-2]) + offset
    speeds = base ** (-torch.arange(count, dtype=torch.float64) / count)
    angles = positions.to(torch.float64).unsqueeze(-1) * speeds
    cos, sin = angles.cos().to(wide), angles.sin().to(wide)
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :count], x[..., count:])
    first, second = a * cos - b * sin, b * cos + a * sin
    turned = torch.stack((first, second), -1).flatten(-2) if interleaved else torch.cat((first, second), -1)
    return turned.to(x.dtype)


ROWS |= {
    "attention: grouped": attention(),
    "attention: grouped, causal": attention(True),
    "attention: grouped, added mask": attention(),
    "attention: one head of keys for all, causal": attention(True),
    "attention: grouped, as multi_head_attention": grouped_heads,
    "attention_adjoint: grouped": slopes(attention(True), 3),
    "attention_adjoint: one head of keys for all": slopes(attention(), 3),
    "concat: rotary_embedding": lambda x: rotary(x, offset=2),
    "concat: rotary_embedding, interleaved, positions":
        lambda x, at: rotary(rotary(x, at, base=100.0, interleaved=True), interleaved=True),
    "concat: rotary_embedding, no rows": rotary,
    "norm: weight_norm": lambda v, g: v * (g / v.norm(dim=0)),
    "norm: weight_norm, four axes": lambda v, g: v * (g / v.flatten(1).norm(dim=1).reshape(-1, 1, 1, 1)),
    "abs: weight_norm of a vector": lambda v, g: v * (g / v.abs()),
    "matmul: spectral_norm": lambda w: w / torch.linalg.svdvals(w.to(torch.promote_types(w.dtype, torch.float32)))[0],
    "attention": attention(),
    "attention, masked": attention(),
    "attention: causal": attention(True),
    "attention: causal, more keys than queries": attention(True),
    "attention: causal, more queries than keys": attention(True),
    "attention: a scale": attention(scale=0.3),
    "attention: added mask for each head": attention(True),
    "attention: four heads, as multi_head_attention": four_heads,
    "attention_adjoint: plain": slopes(attention(), 3),
    "attention_adjoint: masked": slopes(attention(True), 3),
    "attention_adjoint: added mask": slopes(attention(), 3),
}

# Convolutions, pooling, images -------------------------------------------------------------------

ROWS |= {
    "conv1d: special numbers": lambda x, w: F.conv1d(x, w, padding=1),
    "conv1d: one element": F.conv1d,
    "convolution: sequence, dilated": lambda x, w, b: F.conv1d(x, w, b, padding=1, dilation=2),
    "convolution: image, padded": lambda x, w: F.conv2d(x, w, padding=1),
    "convolution: image, stride and padding per axis, bias":
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0)),
    "convolution: groups": lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2),
    "convolution: depthwise": lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=4),
    "convolution: kernel of one element": F.conv2d,
    "convolution: volume": lambda x, w: F.conv3d(x, w, stride=(1, 2, 2), padding=(0, 1, 1)),
    "convolution: empty batch": F.conv2d,
    "convolution: channels last, stride, bias":
        lambda x, w, b: F.conv2d(x.movedim(-1, 1), w, b, stride=(2, 1), padding=1).movedim(1, -1),
    "transposed_convolution: channels last, groups":
        lambda x, w: F.conv_transpose1d(x.movedim(-1, 1), w, stride=2, groups=2).movedim(1, -1),
    "convolution: one image without a batch, bias": lambda x, w, b: F.conv2d(x, w, b, padding=1),
    "transposed_convolution: one sequence without a batch": lambda x, w: F.conv_transpose1d(x, w, stride=2),
    "transposed_convolution: sequence":
        lambda x, w, b: F.conv_transpose1d(x, w, b, stride=3, padding=1, output_padding=2),
    "transposed_convolution: image, groups, dilated":
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, dilation=(1, 2), groups=2),
    "transposed_convolution: stride longer than the kernel":
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=3),
    "convolution_weight: strided": lambda x, w: slope(F.conv2d(x, w, stride=2, padding=1) ** 2, w),
    "convolution_weight: depthwise": lambda x, w: slope(F.conv2d(x, w, padding=1, groups=4) ** 2, w),
    "max_pool: special numbers": lambda x: F.max_pool1d(x, 2),
    "max_pool: equal numbers": lambda x: F.max_pool2d(x, 2),
    "max_pool: negative infinities": lambda x: F.max_pool1d(x, 2),
    "max_pool: sequence": lambda x: F.max_pool1d(x, 3),
    "max_pool: image, overlapping, padded": lambda x: F.max_pool2d(x, 3, (2, 1), 1),
    "max_pool: volume, rounded up": lambda x: F.max_pool3d(x, (2, 2, 1), ceil_mode=True),
    "max_pool: dilated, padded": lambda x: F.max_pool2d(
        F.pad(x, (1, 1, 2, 2), value=-math.inf), (3, 2), (2, 1), dilation=(2, 3)),
    "max_pool: adaptive": lambda x: F.adaptive_max_pool2d(x, (3, 4)),
    "max_pool: global": lambda x: F.adaptive_max_pool3d(x, 1),
    "max_pool: channels last, overlapping":
        lambda x: F.max_pool2d(x.movedim(-1, 1), (2, 3), 1, 1).movedim(1, -1),
    "max_pool: empty batch": lambda x: F.max_pool2d(x, 2),
    "max_pool_pick: by the derivative along a direction":
        lambda x, z, dy: pull_back(pull_back(F.max_pool2d(x, 2), x, dy), dy, z),
    "max_pool_adjoint: overlapping": lambda x, dy: pull_back(F.max_pool1d(x, 3, 2), x, dy),
    "average_pool: special numbers": lambda x: F.avg_pool1d(x, 2),
    "average_pool: image, padding counted": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "average_pool: padding not counted, rounded up":
        lambda x: F.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True, count_include_pad=False),
    "average_pool: volume": lambda x: F.avg_pool3d(x, (2, 3, 1)),
    "average_pool: adaptive, windows of different sizes": lambda x: F.adaptive_avg_pool1d(x, 4),
    "average_pool: adaptive, enlarging": lambda x: F.adaptive_avg_pool3d(x, (7, 1, 3)),
    "average_pool: channels last, adaptive":
        lambda x: F.adaptive_avg_pool3d(x.movedim(-1, 1), (3, 2, 5)).movedim(1, -1),
    "average_pool: empty batch": lambda x: F.avg_pool2d(x, 2),
    "average_pool_adjoint: overlapping": lambda x, dy: pull_back(F.avg_pool2d(x, (3, 2), (2, 1)), x, dy),
    "mean: of an image": lambda x: F.adaptive_avg_pool2d(x, 1),
    "upsample: special numbers": lambda x: F.interpolate(x, scale_factor=2, mode="linear"),
    "resize: nearest, doubled": lambda x: F.interpolate(x, scale_factor=2),
    "resize: nearest, other sizes": lambda x: F.interpolate(x, (2, 5, 3)),
    "resize: bilinear, edges kept": lambda x: F.interpolate(x, scale_factor=(2, 3), mode="bilinear"),
    "resize: bilinear, corners kept": lambda x: F.interpolate(x, (7, 3), mode="bilinear", align_corners=True),
    "resize: trilinear": lambda x: F.interpolate(x, (4, 3, 6), mode="trilinear"),
    "resize: trilinear, corners kept, shrinking":
        lambda x: F.interpolate(x, (2, 4, 3), mode="trilinear", align_corners=True),
    "resize: linear to one element": lambda x: F.interpolate(x, 1, mode="linear", align_corners=True),
    "resize: bicubic": lambda x: F.interpolate(x, (7, 3), mode="bicubic"),
    "resize: bicubic, corners kept": lambda x: F.interpolate(x, (3, 8), mode="bicubic", align_corners=True),
    "resize: tricubic, one size kept":
        lambda x: F.interpolate(x.flatten(1, 2), (4, 1), mode="bicubic").unflatten(1, x.shape[1:3]),
    "resize_adjoint: bicubic":
        lambda x, dy: pull_back(F.interpolate(x, (6, 7), mode="bicubic"), x, dy),
    "permute: of channel_shuffle": lambda x: F.channel_shuffle(x.unsqueeze(-1), 2).squeeze(-1),
    "average_pool: lp_pool": lambda x: F.lp_pool2d(x, 2, (3, 2)),
    "average_pool: lp_pool with p = 3, overlapping":
        lambda x: (F.avg_pool1d(x.abs() ** 3, 4, 2) * 4) ** (1 / 3),
    "average_pool: lp_pool, channels last":
        lambda x: F.avg_pool2d(x.abs().movedim(-1, 1), 2).movedim(1, -1) * 4,
    "average_pool: lp_pool of zeros": lambda x: 2 * torch.where(
        (means := F.avg_pool2d(x**4, 2)) > 0, torch.where(means > 0, means, 1).sqrt(), 0),
    "max_pool: lp_pool with p = ∞": lambda x: F.max_pool2d(x.abs(), 2),
    "grid_sample: volume, zeros outside": lambda x, g: F.grid_sample(x, g, align_corners=False),
    "grid_sample: volume, border outside, corners at the ends":
        lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=True),
    "grid_sample: volume, nearest": lambda x, g: F.grid_sample(x, g, "nearest", align_corners=False),
    "grid_sample_image_adjoint: volume":
        lambda x, g, dy: pull_back(F.grid_sample(x, g, align_corners=False), x, dy),
    "grid_sample_grid_adjoint: volume":
        lambda x, g, dy: pull_back(F.grid_sample(x, g, align_corners=False), g, dy),
    "resize: empty batch": lambda x: F.interpolate(x, scale_factor=2),
    "resize_adjoint: bilinear":
        lambda x, dy: pull_back(F.interpolate(x, (6, 7), mode="bilinear"), x, dy),
    "permute: of pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "permute: of pixel_shuffle in threes": lambda x: F.pixel_shuffle(x, 3),
    "permute: of pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
    "grid_sample: zeros outside": lambda x, g: F.grid_sample(x, g, align_corners=False),
    "grid_sample: border outside, corners at the ends":
        lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=True),
    "grid_sample: nearest, zeros outside": lambda x, g: F.grid_sample(x, g, "nearest", align_corners=False),
    "grid_sample_image_adjoint: nearest, border outside":
        lambda x, g, dy: pull_back(F.grid_sample(x, g, "nearest", "border", True), x, dy),
    "grid_sample_image_adjoint: zeros outside":
        lambda x, g, dy: pull_back(F.grid_sample(x, g, align_corners=False), x, dy),
    "grid_sample_grid_adjoint: zeros outside":
        lambda x, g, dy: pull_back(F.grid_sample(x, g, align_corners=False), g, dy),
}

# Recurrent cells ---------------------------------------------------------------------------------


def rnn_cell(x, h, w, u, b, activation=torch.tanh):
    return activation(x @ w + h @ u + b)


def lstm_cell(x, h, c, w, u, b):
    i, f, g, o = (x @ w + h @ u + b).chunk(4, -1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru_cell(x, h, w, u, b, hidden_bias):
    r, z, n = (x @ w + b).chunk(3, -1)
    s, y, m = (h @ u + hidden_bias).chunk(3, -1)
    m = torch.tanh(n + torch.sigmoid(r + s) * m)
    return m + torch.sigmoid(z + y) * (h - m)


def two_lstm_steps(x, h, w, u, b, c):
    h, c = lstm_cell(x, h, c, w, u, b)
    h, c = lstm_cell(x, h, c, w, u, b)
    return h * c


def rnn(x, h, *parameters):
    outputs = []
    for step in x:
        h = rnn_cell(step, h, *parameters)
        outputs.append(h)
    return torch.stack(outputs) * h


def lstm(x, h, w, u, b, c):
    outputs = []
    for step in x:
        h, c = lstm_cell(step, h, c, w, u, b)
        outputs.append(h)
    return torch.stack(outputs) * c


def gru(x, h, *parameters):
    outputs = []
    for step in x:
        h = gru_cell(step, h, *parameters)
        outputs.append(h)
    return torch.stack(outputs)


ROWS |= {
    "tanh: two steps of rnn_cell": lambda x, h, *p: rnn_cell(x, rnn_cell(x, h, *p), *p),
    "relu: rnn_cell": lambda x, h, *p: rnn_cell(x, h, *p, torch.relu),
    "slice: two steps of lstm_cell": two_lstm_steps,
    "slice: two steps of gru_cell": lambda x, h, *p: gru_cell(x, gru_cell(x, h, *p), *p),
    "concat: rnn of a sequence": rnn,
    "concat: lstm of a sequence": lstm,
    "concat: gru of a sequence": gru,
}
