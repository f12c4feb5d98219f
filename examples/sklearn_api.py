"""Class-incremental learning by scikit-learn's rules: two digits at a time, with JIOC and without.

python examples/sklearn_api.py
"""

import pickle

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split

import jioc

digits = load_digits()
X = digits.data  # vectors of 64 numbers, learnt by a small MLP; digits.images, (n, 8, 8), would get a ResNet
x, held, y, truth = train_test_split(X, digits.target, test_size=0.3, random_state=0)

for coordinate in ("none", "jioc"):
    classifier = jioc.IncrementalClassifier(
        "icarl", coordinate=coordinate, memory=100, epochs=20, random_state=0
    )
    for first in range(0, 10, 2):
        new = np.isin(y, [first, first + 1])
        classifier.partial_fit(x[new], y[new])  # the images of earlier digits are not needed again
    print(f"coordinate={coordinate}: accuracy {classifier.score(held, truth):.3f} on digits 0 to 9")

kept = pickle.loads(pickle.dumps(classifier))  # what was learnt, and what learning on needs
print("the first test images:", kept.predict(held[:8]), "in truth:", truth[:8])

# `tasks` lets `fit` learn in tasks: with all digits at once there would be nothing to forget or to choose.
candidate = jioc.IncrementalClassifier(
    "icarl", coordinate="jioc", tasks=5, memory=100, epochs=10, random_state=0
)
search = GridSearchCV(candidate, {"gamma2": [0.0, 1.0]}, cv=2, refit=False).fit(X, digits.target)
print("the best of the search:", search.best_params_, f"with accuracy {search.best_score_:.3f}")
