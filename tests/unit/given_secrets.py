"""Values that must pass and values that must not, for tests of code that judges or prints them.

Secrets are assembled here: as literals, repository scanners would find them. None of them is real.
"""

from __future__ import annotations

import base64
import json
import random
import string

_chance = random.Random(20261121)


def drawn(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(_chance.choices(alphabet, k=length))


HEX = "0123456789abcdef"
_CERTIFICATE = base64.b64encode(b"\x30\x82\x01\x2a\x30\x81\xd1" + _chance.randbytes(180)).decode()
_PRIVATE = base64.b64encode(b"\x30\x82\x01\x2a\x02\x01\x00" + _chance.randbytes(180)).decode()


def pem(kind: str, body: str) -> str:
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


PUBLIC: dict[str, str] = {
    "image digest": "vllm/vllm-openai@sha256:" + drawn(64, HEX),
    "bare SHA-256": drawn(64, HEX),
    "bare MD5": drawn(32, HEX),
    "SHA-512": drawn(128, HEX),
    "commit": drawn(40, HEX),
    "short commit": drawn(7, HEX),
    "model revision": "refs/pr/12",
    "revision in an address": "https://huggingface.co/Qwen/Qwen3-8B/tree/" + drawn(40, HEX),
    "role": "arn:aws:iam::123456789012:role/service-role/AmazonEKSAutoClusterRole9f2Kx7Qw3Zp8Lm",
    "secret's ARN": "arn:aws:secretsmanager:us-east-2:123456789012:secret:prod/hf-token-AbC1dE",
    "repository of the Hub": "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
    "long repository of the Hub": "unsloth/DeepSeek-R1-Distill-Qwen-32B-GGUF-UD-Q4_K_XL",
    "UUID": "6f9619ff-8b86-d011-b42d-00c04fc964ff",
    "file system": "fs-0123456789abcdef0",
    "subnet": "subnet-0a1b2c3d4e5f60718",
    "reservation": "cr-0fedcba9876543210",
    "Identity Center group": "9067642ac7-6f9619ff-8b86-d011-b42d-00c04fc964ff",
    "address of a cluster": "https://" + drawn(32, HEX).upper() + ".gr7.us-east-2.eks.amazonaws.com",
    "image in ECR": "123456789012.dkr.ecr.us-east-2.amazonaws.com/inference/vllm-openai:v0.33.0-cu130",
    "chat template in base64": encoded("{% for message in messages %}{{ message['content'] }}{% endfor %}"),
    "JSON in base64": encoded(json.dumps({"rope_type": "yarn", "factor": 4.0, "original": 32768})),
    "certificate in base64": _CERTIFICATE,
    "certificate": pem("CERTIFICATE", _CERTIFICATE),
    "certificate in base64 twice": encoded(pem("CERTIFICATE", _CERTIFICATE)),
    "public key": pem("PUBLIC KEY", _CERTIFICATE),
    "SSH public key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + drawn(43) + " ops@example.com",
    "integrity": "sha384-" + base64.b64encode(_chance.randbytes(48)).decode(),
    "fingerprint of a host": "SHA256:" + base64.b64encode(_chance.randbytes(32)).decode().rstrip("="),
    "go.sum": "h1:" + base64.b64encode(_chance.randbytes(32)).decode(),
    "bucket": "s3://modelyard-prod-weights-123456789012-us-east-2/Qwen/Qwen3-32B-FP8",
    "version": "1.29.2-eksbuild.13+build.20261121",
    "long name": "support-chat-for-the-european-customers-of-the-wholesale-division-2",
    "address": "http://kube-prometheus-stack-prometheus.monitoring:9090/api/v1/write",
    "address with a user": "https://git-bot@git.example.com/platform/inference.git",
    "address with a port and a digest": "oci://registry.example.com:5000/charts/kueue@sha256:"
    + drawn(64, HEX),
    "address with a place for a password": "postgresql://app:$(DB_PASSWORD)@db.prod.svc:5432/app",
    "fragment": "https://docs.vllm.ai/en/latest/serving#" + drawn(40, HEX),
    "Git over SSH": "git@github.com:example/inference-platform.git",
    "GGUF file": "Qwen3-30B-A3B-Instruct-2507-UD-Q4_K_XL-00001-of-00003.gguf",
    "CUDA architectures": "8.0;8.6;8.9;9.0a;10.0;12.0+PTX",
    "cron": "0 7 * * 1-5",
    "class": "Eagle3DeepseekV3ForCausalLMNextN",
    "JSON argument": '{"method": "eagle3", "num_speculative_tokens": 5, "draft_tensor_parallel_size": 1}',
    "special token": "<|end_of_text|>",
    "prose": "The token limit is 32k: prompts that are longer get an answer with status 400.",
    "prose on passwords": "password: asked for at the first start, never stored",
    "query": 'sum(rate(vllm:request_success_total{namespace="models"}[5m])) by (model_name)',
    "label value": "modelyard-prod-llama-3-3-70b-instruct-fp8-dynamic",
    "time": "2026-11-21T22:43:11.123456Z",
    "word that begins like a key": "sk-learn-pipelines-for-tabular-data",
    "word with hf_": "hf_transformers_modeling_backend",
}
"""What stands in files of models and environments and is no secret, in a neutral place."""

SECRET: dict[str, str] = {
    "Hugging Face": "hf_" + drawn(34, string.ascii_letters),
    "Hugging Face organization": "api_org_" + drawn(34, string.ascii_letters),
    "OpenAI project": "sk-" + "proj-" + drawn(48),
    "OpenAI, old": "sk-" + drawn(48),
    "Anthropic": "sk-" + "ant-api03-" + drawn(93),
    "OpenRouter": "sk-" + "or-v1-" + drawn(64, HEX),
    "LiteLLM": "sk-" + "aB3_" + drawn(18),
    "AWS access key": "AKIA" + drawn(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "AWS session": "ASIA" + drawn(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "AWS secret access key": drawn(19) + "/" + drawn(20),
    "Bedrock": "ABSK" + drawn(128),
    "presigned address": "https://b.s3.amazonaws.com/k?X-Amz-Signature=" + drawn(64, HEX),
    "GitHub": "ghp_" + drawn(36),
    "GitHub, fine-grained": "github_pat_" + drawn(22) + "_" + drawn(59),
    "GitLab": "glpat-" + drawn(20),
    "Slack": "xoxb-" + drawn(12, "0123456789") + "-" + drawn(12, "0123456789") + "-" + drawn(24),
    "Slack webhook": "https://hooks.slack.com/services/T"
    + drawn(8).upper()
    + "/B"
    + drawn(8).upper()
    + "/"
    + drawn(24),
    "Discord webhook": "https://discord.com/api/webhooks/123456789012345678/" + drawn(68),
    "Google": "AIza" + drawn(35),
    "Google OAuth": "GOCSPX-" + drawn(28),
    "Stripe": "sk_" + "live_" + drawn(24),
    "npm": "npm_" + drawn(36),
    "PyPI": "pypi-AgE" + drawn(60),
    "Docker Hub": "dckr_" + "pat_" + drawn(27),
    "Twilio": "SK" + drawn(32, HEX),
    "SendGrid": "SG." + drawn(22) + "." + drawn(43),
    "Azure storage": "DefaultEndpointsProtocol=https;AccountName=w;AccountKey=" + drawn(86) + "==",
    "Azure signature": "https://w.blob.core.windows.net/c?sv=2026-01-01&sig=" + drawn(42) + "%3D",
    "Entra": drawn(3) + "8Q~" + drawn(34),
    "NVIDIA": "nvapi-" + drawn(64),
    "Groq": "gsk_" + drawn(52),
    "Replicate": "r8_" + drawn(37),
    "Databricks": "dapi" + drawn(32, HEX),
    "Vault": "hvs." + drawn(90),
    "DigitalOcean": "dop_v1_" + drawn(64, HEX),
    "age": "AGE-" + "SECRET-KEY-1" + drawn(58, "ACDEFGHJKLMNPQRSTUVWXYZ023456789"),
    "Grafana": "glsa_" + drawn(32) + "_" + drawn(8, HEX),
    "LangSmith": "lsv2_pt_" + drawn(32, HEX) + "_" + drawn(10, HEX),
    "Weights & Biases": "wandb_v1_" + drawn(77),
    "service account": "eyJ" + drawn(40) + ".eyJ" + drawn(200) + "." + drawn(86),
    "RSA key": pem("RSA " + "PRIVATE KEY", _PRIVATE),
    "OpenSSH key": pem("OPENSSH " + "PRIVATE KEY", _PRIVATE),
    "PGP key": pem("PGP " + "PRIVATE KEY BLOCK", _PRIVATE),
    "private key in base64": encoded(pem("PRIVATE " + "KEY", _PRIVATE)),
    "private key without its frame": _PRIVATE,
    "Docker's config": json.dumps({"auths": {"ghcr.io": {"auth": encoded("bot:" + drawn(12))}}}),
    "password in an address": "https://admin:hunter2@grafana.example.com/api",
    "password in Redis' address": "redis://:hunter2@cache.prod:6379/0",
    "token in a Git address": "https://x-access-token:ghs_" + drawn(36) + "@github.com/example/inference.git",
    "token as a user": "https://" + drawn(36) + "@git.example.com/inference.git",
    "bearer header": "Authorization: Bearer " + drawn(32),
    "basic header": "Authorization: Basic " + encoded("admin:hunter2"),
    "connection string": "Server=db;Database=chat;User Id=app;Password=hunter2;",
    "option of a command": "serve --api-key hunter2-prod --port 8000",
    "setting in a command": "export DB_PASSWORD=hunter2 && serve",
    "random base64 of 32 bytes": base64.b64encode(_chance.randbytes(32)).decode(),
    "random base64 of 48 bytes": base64.b64encode(_chance.randbytes(48)).decode(),
    "random letters and digits": drawn(43),
    "random URL-safe text": base64.urlsafe_b64encode(_chance.randbytes(36)).decode(),
    "random hexadecimal": drawn(48, HEX),
}
"""What is refused in a neutral place: an environment variable `SETTING`."""
