"""The first request to a model, for curl and for OpenAI's Python client."""

from __future__ import annotations

import json
from typing import Any

from modelyard.cli.endpoints import API_KEY
from modelyard.objects.traffic.addresses import Address
from modelyard.spec.weights import Task

_TEXTS = ["Why is the sky blue?", "Blue light is scattered most."]
_PATHS: dict[Task, str] = {"generate": "/chat/completions", "embed": "/embeddings", "rerank": "/rerank"}


def _body(task: Task, model: str) -> dict[str, Any]:
    if task == "generate":
        asked = [{"role": "user", "content": f"{_TEXTS[0]} One sentence."}]
        return {"model": model, "messages": asked, "max_tokens": 256}
    if task == "embed":
        return {"model": model, "input": _TEXTS}
    return {"model": model, "query": _TEXTS[0], "documents": [*_TEXTS[1:], "Bread needs yeast."]}


def key_command(secret: str, region: str) -> str:
    """Shell command that puts the key named `secret` in Secrets Manager into the variable `API_KEY`."""
    return (
        f'export {API_KEY}="$(aws secretsmanager get-secret-value --region {region} --secret-id {secret} '
        '--query SecretString --output text)"'
    )


def curl(address: Address, task: Task) -> str:
    lines = [f"curl --fail-with-body {address.url}{_PATHS[task]}"]
    if address.secret:
        lines.append(f'-H "Authorization: Bearer ${API_KEY}"')
    lines.append("-H 'Content-Type: application/json'")
    text = json.dumps(_body(task, address.model)).replace("'", "'\\''")
    lines.append(f"-d '{text}'")
    return " \\\n  ".join(lines)


def python(address: Address, task: Task) -> str:
    key = f'os.environ["{API_KEY}"]' if address.secret else '"none"'
    lines = [
        *(("import os",) if address.secret else ()),
        "from openai import OpenAI",
        "",
        f"client = OpenAI(base_url={json.dumps(address.url)}, api_key={key})",
        *_asking(task, address.model),
    ]
    return "\n".join(lines)


def _asking(task: Task, model: str) -> list[str]:
    body = _body(task, model)
    if task == "generate":
        return [
            "answer = client.chat.completions.create(",
            *(f"    {key}={json.dumps(value)}," for key, value in body.items()),
            ")",
            "print(answer.choices[0].message.content)",
        ]
    if task == "embed":
        return [
            f"answer = client.embeddings.create(model={json.dumps(model)}, input={json.dumps(body['input'])})",
            "print(len(answer.data), len(answer.data[0].embedding))",
        ]
    return [
        "answer = client.post(",
        '    "/rerank",',
        "    cast_to=object,",
        f"    body={json.dumps(body)},",
        ")",
        'print(answer["results"])',
    ]
