"""What files of before, which do not say it, would say of methods that are no part of the product."""

from engram.learners.base import About

# Name, title, what is stored of a class, and whether samples are.
_ROWS = (
    ("prototypes", "Autoencoder with class means", "one mean code", False),
    ("mas", "MAS", "one mean code", False),
    ("si", "SI", "one mean code", False),
    ("mas-lof", "MAS+LOF", "one mean code", False),
    ("si-lof", "SI+LOF", "one mean code", False),
    ("geppnet", "GeppNet", "every training feature vector, one read-out row", True),
    ("icarl", "iCaRL", "exemplars, 2,000 in all, and one read-out row", True),
    ("fearnet", "FearNet", "mean and full covariance of the code, one read-out row", True),
    ("fecam", "FeCAM", "one mean and one full covariance of the features", False),
    ("ranpac", "RanPAC", "one sum of projected features, one read-out row (and one Gram matrix for all)", False),
    ("ewc", "EWC", "one read-out row and its Fisher information", False),
    ("lwf", "LwF", "one read-out row", False),
    ("gem", "GEM", "stored samples, 2,000 in all, and one read-out row", True),
    ("gan-replay", "GAN replay", "two embeddings, one read-out row (and one conditional GAN for all)", False),
    ("icwgan", "ICwGAN", "two embeddings, one read-out row (and one conditional GAN for all)", False),
    ("hat", "HAT", "one gate per hidden unit, one read-out row", False),
    ("deepncm", "DeepNCM", "one mean code", False),
    ("finetune", "Fine-tuning", "one read-out row", False),
    ("joint", "Joint training", "every training feature vector", True),
)
OLDER = {name: About(title, "", per_class, keeps_samples) for name, title, per_class, keeps_samples in _ROWS}
