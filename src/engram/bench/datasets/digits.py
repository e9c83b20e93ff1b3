"""The digits that come with scikit-learn: real data on every machine, without a download."""

import numpy as np

from engram.datasets.dataset import Dataset, Split


def digits() -> Dataset:
    """Return 1,797 handwritten digits as float32 vectors of their 8×8 grey values (0..16), labels "0" to "9".

    A quarter of each class is the test split, always the same one.
    """
    from sklearn.datasets import load_digits  # here, as the commands for folders of pictures need none of it
    from sklearn.model_selection import train_test_split

    vectors, numbers = load_digits(return_X_y=True)
    labels = np.asarray([str(number) for number in numbers])
    train_x, test_x, train_y, test_y = train_test_split(
        vectors.astype(np.float32), labels, test_size=0.25, stratify=labels, random_state=0
    )
    return Dataset(
        "digits", Split(train_x, train_y.tolist()), Split(test_x, test_y.tolist()), [str(digit) for digit in range(10)]
    )
