"""Another program's validating webhook, over TLS: it denies each deletion of a pod while it is told to."""

import base64
import contextlib
import http.server
import json
import ssl
import threading
import time

from lastcall_lab.apiserver.authentication import certificates


class OtherWebhook:
    """``configuration`` is what is applied; ``asked`` counts."""

    def __init__(self, directory):
        self.denies, self.asked = True, 0
        authority = certificates.new_authority("authority", now=time.time())
        pair = certificates.server_certificate("other", ["127.0.0.1"], authority, now=time.time())
        for name, content in (("crt", pair.certificate), ("key", pair.key)):
            (directory / f"other.{name}").write_bytes(content)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "other.crt", directory / "other.key")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._bundle = base64.b64encode(authority.certificate).decode()

    @contextlib.contextmanager
    def serving(self):
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    @property
    def configuration(self):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["pods"]}
        url = f"https://127.0.0.1:{self._server.server_address[1]}/"
        webhook = {
            "name": "backup.example.com",
            "clientConfig": {"url": url, "caBundle": self._bundle},
            "rules": [rule],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "backup"},
            "webhooks": [webhook],
        }

    def _handler(self):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                owner.asked += 1
                uid = json.loads(self.rfile.read(int(self.headers["content-length"])))["request"]["uid"]
                status = {"code": 403, "message": "a backup runs"}
                response = {"uid": uid, "allowed": not owner.denies, "status": status}
                review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
                body = json.dumps(review).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        return Handler
