"""Area attention: positions attend to the positions of their own horizontal band.

Cutting the picture into bands divides the cost of attention by their number; a 7×7 depthwise convolution of the
values, added to the result, tells positions apart.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from surgeval.detector.convolution import Cbs
from surgeval.errors import BadInput

__all__ = ["HEAD_CHANNELS", "AreaAttention"]

HEAD_CHANNELS = 32


class AreaAttention(nn.Module):
    """Attention with `channels` / 32 heads inside each of `areas` equal runs of positions in row order.

    `scaled_dot_product_attention` keeps products and softmax in float32 whatever the type of its arguments, so float16
    does not overflow here.
    """

    def __init__(self, channels: int, *, areas: int) -> None:
        super().__init__()
        if channels % HEAD_CHANNELS:
            raise BadInput(f"area attention: found {channels} channels, expected a multiple of {HEAD_CHANNELS}")
        self.areas = areas
        # The queries of all heads come first, then all keys, then all values: so the values are a plain slice. Weights
        # from elsewhere that keep the three of a head together would need their rows in this order.
        self.qkv = Cbs(channels, 3 * channels, 1, active=False)
        self.position = Cbs(channels, channels, 7, groups=channels, active=False)
        self.project = Cbs(channels, channels, 1, active=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        heads, run = channels // HEAD_CHANNELS, height * width // self.areas
        qkv = self.qkv(x)
        # The fast kernels want the channels of a position side by side; channels-last pictures have them so already.
        rows = qkv.flatten(2).transpose(1, 2).contiguous().view(batch * self.areas, run, 3, heads, HEAD_CHANNELS)
        query, key, value = rows.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(query, key, value)
        seen = seen.transpose(1, 2).reshape(batch, height, width, channels).permute(0, 3, 1, 2)
        return self.project(self.position(qkv[:, 2 * channels :]) + seen)  # the first operand gives the memory format
