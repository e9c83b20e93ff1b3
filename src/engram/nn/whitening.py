"""Cosines in a space where samples vary alike in every direction, and what they would be had a sample not been seen."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engram.nn import symmetric

PROBES = 256  # random vectors that a trace is estimated with where d is larger
BACKGROUND = 0.5  # how far the spread of the class means counts as known, when a sample may be of no class
MOST = 2048  # class means that their spread is computed of
SMALL = 1e-12
ROUNDING = 2**-10  # of a number in 16 bits
CERTAIN = 1e-3  # rounding may make a sample look like all there is of a direction, or more; it is this much less


@dataclass(frozen=True)
class Space:
    """All that answering needs, computed from class means and one scatter.

    With Σ = UᵀU, w = U⁻ᵀ(z - o) is a sample as it lies in this space; `means` are class means as they lie in it.
    """

    origin: Tensor  # o, the mean of the class means
    factor: Tensor  # U, upper triangular
    means: Tensor  # w_c, (classes, d)
    squares: Tensor  # ‖w_c‖²
    noise: Tensor  # v / n_c, what the samples' noise adds to ‖w_c‖²
    shares: Tensor  # n_c / N
    leverage: Tensor  # (1 - ε) / N, the weight in Σ of one sample's deviation squared
    rows: Tensor | None = None  # what `spread` gives, once it has been computed
    inverse: Tensor | None = None
    solved: Tensor | None = None  # U⁻¹, for an exported graph: ONNX does not solve triangular systems

    def whiten(self, z: Tensor) -> Tensor:
        """w of each sample."""
        return _solve(self.factor, z - self.origin) if self.solved is None else (z - self.origin) @ self.solved

    def traceable(self) -> "Space":
        """The same space for an exported graph, with all that is computed beforehand."""
        rows, inverse = self.spread()
        solved = _solve(self.factor, torch.eye(len(self.factor)).to(self.factor))
        return replace(self, rows=rows, inverse=inverse, solved=solved)

    def tensors(self) -> dict[str, Tensor]:
        """All of it that is there, by name."""
        return {name: tensor for name, tensor in vars(self).items() if tensor is not None}

    def cosines(self, w: Tensor) -> Tensor:
        """w·w_c / (‖w‖ · √(‖w_c‖² - v/n_c)): Eq. 1, the length of a mean freed of its noise."""
        return _cosines(w @ self.means.T, w.square().sum(dim=1), self.squares, self.noise)

    def familiarity(self, w: Tensor) -> Tensor:
        """How much better the nearest class explains a sample than no class does; see `_familiarity`."""
        return _familiarity(w @ self.means.T, w.square().sum(dim=1), self.squares, self.spread())

    def spread(self) -> tuple[Tensor, Tensor]:
        """Rows of class means and a matrix P with b·Pb = ‖w‖² - ‖w‖²_B for b = w·w_c of those: see `_familiarity`.

        Of very many classes, some that lie evenly among them stand for all.
        """
        if self.rows is not None and self.inverse is not None:
            return self.rows, self.inverse
        classes = len(self.means)
        rows = torch.linspace(0, classes - 1, min(classes, MOST), device=self.means.device).round().long()
        # In float64, as classes far apart make numbers beside which the 1 would vanish.
        means, shares = self.means[rows].double(), self.shares[rows].double()
        root = (shares / shares.sum()).sqrt()
        gram = root[:, None] * (means @ means.T) * root
        gram.diagonal().add_(1)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(gram))
        return rows, (root[:, None] * inverse * root).to(self.means.dtype)


def build(means: Tensor, counts: Tensor, scatter: Tensor, unit: Tensor, samples: Tensor) -> Space:
    """The space that class means make with the scatter S of N samples, kept as `symmetric.add` keeps it.

    Σ = (1 - ε)·S/N + ε·(tr(S/N)/d)·I with ε = d / (d + N): few samples trust the sphere, many trust themselves.
    """
    d, n, means = means.shape[1], int(samples), means.to(torch.promote_types(means.dtype, torch.float32))
    epsilon, sphere = d / (d + n), unit.to(means.dtype) / n
    # So small that parts of it would vanish, it is rounding: what is added below would be nothing, without an end.
    sphere = torch.where(sphere < torch.finfo(means.dtype).tiny / ROUNDING, 0.0, sphere)
    sigma = symmetric.unpack_triangle(scatter, means.dtype) * ((1 - epsilon) * sphere)
    floor = torch.where(sphere > 0, epsilon * sphere, 1.0)  # where nothing varies yet: I
    sigma.diagonal().add_(floor)
    factor, failed = torch.linalg.cholesky_ex(sigma, upper=True)
    while failed:  # S, rounded to 16 bits, varies less than nothing in some direction: as much is added as it takes
        sigma.diagonal().add_(floor.clamp(min=ROUNDING * sphere))
        floor = floor + floor.clamp(min=ROUNDING * sphere)
        factor, failed = torch.linalg.cholesky_ex(sigma, upper=True)
    origin = means.mean(dim=0)
    whitened = _solve(factor, means - origin)
    # v = tr(U⁻ᵀ (S/N) U⁻¹), and S/N = (Σ - floor·I) / (1 - ε)
    v = ((d - floor * _trace_of_inverse(factor)) / (1 - epsilon)).clamp(min=0)  # less than none is rounding
    return Space(
        origin=origin,
        factor=factor,
        means=whitened,
        squares=whitened.square().sum(dim=1),
        noise=torch.where(sphere > 0, v, 0.0) / counts,
        shares=counts / counts.sum().to(means.dtype),
        leverage=torch.as_tensor((1 - epsilon) / n, dtype=means.dtype, device=means.device),
    )


def leave_one_out(space: Space, w: Tensor, targets: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines (n, classes) and familiarity (n,) of learned samples, had each in turn not been learned.

    Without a sample z of class c with n samples, the class mean moves by -r/(n - 1), r = z - μ_c; the origin by that
    over the number of classes; and Σ loses β·rrᵀ, β = n/(n - 1)·(1 - ε)/N. By Sherman and Morrison, inner products then
    are a·b + κ·(a·u)(b·u) with u = U⁻ᵀr and κ = β / (1 - β·u·u). That ε, tr(S) and the spread of the class means change
    as well is left out: tests show how little it is. A class of one sample would be gone without it: its cosine is -1.
    """
    classes = len(space.means)
    n = counts[targets].clamp(min=2).to(w.dtype)
    u = w - space.means[targets]
    q = u.square().sum(dim=1)
    beta = space.leverage * n / (n - 1)
    kappa = beta / (1 - beta * q).clamp(min=CERTAIN)
    shift = 1 / ((n - 1) * classes)  # the origin moves by -shift·r, so every vector by shift·u
    own = torch.zeros(len(w), classes, dtype=w.dtype, device=w.device)
    own[torch.arange(len(w), device=w.device), targets] = 1 / (n - 1)
    along = shift[:, None] - own  # a class mean becomes w_k + along·u
    wu, ku = (w * u).sum(dim=1), u @ space.means.T
    x_u, y_u = wu + shift * q, ku + along * q[:, None]
    x_x = w.square().sum(dim=1) + 2 * shift * wu + shift**2 * q + kappa * x_u**2
    y_y = space.squares + 2 * along * ku + along**2 * q[:, None] + kappa[:, None] * y_u**2
    x_y = w @ space.means.T + along * wu[:, None] + shift[:, None] * ku + along * (shift * q)[:, None]
    x_y = x_y + (kappa * x_u)[:, None] * y_u
    noise = space.noise * (1 + own)  # v/(n - 1) = v/n·(1 + 1/(n - 1))
    cosines = _cosines(x_y, x_x, y_y, noise).masked_fill((own > 0) & (counts == 1), -1.0)
    return cosines, _familiarity(x_y, x_x, y_y, space.spread())


def _cosines(x_y: Tensor, x_x: Tensor, y_y: Tensor, noise: Tensor) -> Tensor:
    """From inner products; a mean's squared length less its noise is a tenth of itself at least."""
    lengths = torch.maximum(y_y - noise, y_y / 10).sqrt().clamp(min=SMALL)
    return x_y / x_x.sqrt().clamp(min=SMALL)[:, None] / lengths


def _familiarity(x_y: Tensor, x_x: Tensor, y_y: Tensor, spread: tuple[Tensor, Tensor]) -> Tensor:
    """(‖w‖²_o - min_c ‖w - w_c‖²) / ‖w‖: by how much the nearest class beats no class.

    ‖w‖²_o lies between the squared distance to the origin and, with the class means' own spread added to Σ, that to a
    class not met yet, ‖w‖²_B = wᵀ(I + Σ_c n_c/N·w_c w_cᵀ)⁻¹w. The first alone is the better rule where classes are far
    apart, the second where they are alike; docs/method.md has both measured.
    """
    rows, inverse = spread
    explained = ((x_y[:, rows] @ inverse) * x_y[:, rows]).sum(dim=1)
    return ((2 * x_y - y_y).amax(dim=1) - BACKGROUND * explained) / x_x.sqrt().clamp(min=SMALL)


def _solve(factor: Tensor, rows: Tensor) -> Tensor:
    """U⁻ᵀ of every row."""
    solved: Tensor = torch.linalg.solve_triangular(factor, rows, upper=True, left=False)
    return solved


def _trace_of_inverse(factor: Tensor) -> Tensor:
    """tr(Σ⁻¹) = E ‖U⁻ᵀg‖² over random signs g; for small d exactly, with the axes in their place."""
    d = len(factor)
    if d <= PROBES:
        probes = torch.eye(d, dtype=factor.dtype, device=factor.device) * d**0.5
    else:
        signs = torch.randint(2, (PROBES, d), generator=torch.Generator().manual_seed(0)) * 2 - 1
        probes = signs.to(factor)
    return _solve(factor, probes).square().sum(dim=1).mean()
