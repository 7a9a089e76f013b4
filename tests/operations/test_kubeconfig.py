"""An invalid kubeconfig gives a one-line reason, in every command that calls a cluster; a tunnel works."""

from __future__ import annotations

import json
import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from modelyard.live.api.answers import Unreachable
from modelyard.live.api.kubeconfig import context_of
from modelyard.live.api.kubernetes import open_cluster
from modelyard.live.clusters.kinds import POD
from tests.unit.given import an_environment


@pytest.mark.parametrize(
    "text",
    [
        *("a: [", "[]", "a: &a [*a]", "contexts: 1", "[" * 3000, "\0", "a: !!python/object:os.system x"),
        "apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: 5}]\nclusters: []\nusers: []",
    ],
)
def test_a_kubeconfig_that_is_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(path))

    with pytest.raises(Unreachable) as refused:
        context_of(an_environment(), None)

    assert str(refused.value).startswith(f"kubeconfig {path}: ")
    assert len(str(refused.value)) < 400


HOST = "0123456789.gr7.us-east-2.eks.amazonaws.com"


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate of HOST that signs itself, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = folder / "ca.pem", folder / "key.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )
    return pem, private


class NoPods(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": []}')

    def log_message(self, *args: object) -> None:
        pass


@pytest.mark.parametrize("named", [True, False])
def test_a_tunnel_to_the_api_server_needs_the_name_of_its_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, socket_enabled: None, named: bool
) -> None:
    """As `kubectl config set-cluster --tls-server-name` writes it; lightkube does not read it."""
    environment = an_environment()
    arn = f"arn:aws:eks:{environment.region}:{environment.account}:cluster/{environment.cluster_name}"
    pem, key = certified(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, key)
    server = HTTPServer(("127.0.0.1", 0), NoPods)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    cluster = {"server": f"https://localhost:{server.server_port}", "certificate-authority": str(pem)}
    content = {
        "clusters": [{"name": arn, "cluster": cluster | ({"tls-server-name": HOST} if named else {})}],
        "users": [{"name": arn, "user": {"token": "made-up"}}],
        "contexts": [{"name": "lab", "context": {"cluster": arn, "user": arn}}],
    }
    path = tmp_path / "config"
    path.write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setenv("NO_PROXY", "localhost")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        if named:
            assert open_cluster(environment).items(POD) == []
        else:
            with pytest.raises(Unreachable, match="certificate"):
                open_cluster(environment).items(POD)
    finally:
        server.shutdown()
        server.server_close()
