"""What an endpoint for embeddings, or for ranking, must do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from modelyard.endpoint_tests.checks import CheckedEndpoint, Failed, Skipped, refused, require

_TEXTS = ("The cat sat on the mat.", "Interest rates rose by half a point.", "The cat sat on the mat.")
_QUERY = "Where is the cat?"


def embeddings(subject: CheckedEndpoint) -> None:
    """One vector a text, of the right dimension; the same for the same text, and another for another."""
    answer = subject.client.embeddings.create(model=subject.name, input=list(_TEXTS))
    vectors = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
    require(len(vectors) == len(_TEXTS), f"{len(vectors)} vectors for {len(_TEXTS)} texts")
    sizes = {len(vector) for vector in vectors}
    wanted = subject.expected.dimension
    require(len(sizes) == 1 and sizes != {0}, f"vectors have different dimensions: {sorted(sizes)}")
    require(wanted is None or sizes == {wanted}, f"vectors have {sizes.pop()} dimensions, expected {wanted}")
    require(all(math.isfinite(x) for vector in vectors for x in vector), "a vector holds NaN or infinity")
    require(all(any(vector) for vector in vectors), "a vector is all zeros")
    first, other, again = vectors
    require(_cosine(first, again) > 0.999, "the same text has different vectors")
    require(_cosine(first, other) < 0.9999, "different texts have the same vector")
    require(answer.usage is not None and answer.usage.prompt_tokens > 0, "no usage is reported")


def input_limit(subject: CheckedEndpoint) -> None:
    """A text beyond the model's length is refused, not silently cut."""
    length = subject.expected.max_model_len
    if length is None:
        raise Skipped("the length is not known")
    with refused(400, f"a text of more than {length} tokens"):
        subject.client.embeddings.create(model=subject.name, input="one " * (length + 1))


def rerank(subject: CheckedEndpoint) -> None:
    """Every document is ranked once, best first, and not all alike."""
    documents = list(_TEXTS[:2])
    body = {"model": subject.name, "query": _QUERY, "documents": documents}
    answer = subject.client.post("/rerank", body=body, cast_to=object)
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise Failed("the answer has no results")
    ranked = sorted(result["index"] for result in results)
    require(ranked == list(range(len(documents))), f"documents {ranked} were ranked, of {len(documents)}")
    scores = [float(result["relevance_score"]) for result in results]
    require(all(map(math.isfinite, scores)), "a score is NaN or infinite")
    require(scores == sorted(scores, reverse=True), "the results are not sorted by their score")
    require(len(set(scores)) > 1, "every document has the same score")


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    product = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / product if product else 0.0
