"""A client of `ampc lsp`: messages over its standard streams."""
import json
import pathlib
import subprocess


def framed(body):
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class Client:
    """A server that runs, and what it has said."""

    def __init__(self, ampc, encodings=("utf-8", "utf-16"), initialize=True):
        self.process = subprocess.Popen([ampc, "lsp", "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last_id = 0
        self.versions = {}
        self.diagnostics = {}  # by URI: the newest
        if initialize:
            self.capabilities = self.ask("initialize", {
                "processId": None, "rootUri": None, "capabilities": {
                    "general": {"positionEncodings": list(encodings)},
                    "textDocument": {"publishDiagnostics": {"relatedInformation": True}}}})["capabilities"]
            self.tell("initialized", {})

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.write(framed(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    def tell(self, method, params):
        self.send({"method": method, "params": params})

    def read(self):
        """The next message; None where the server has ended."""
        size = None
        while line := self.process.stdout.readline():
            if line == b"\r\n":
                break
            name, value = line.split(b":")
            assert name == b"Content-Length", line  # nothing but messages is on the stream
            size = int(value)
        if not line:
            return None
        message = json.loads(self.process.stdout.read(size))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
        return message

    def answer(self, wanted):
        """The answer with an id; what comes before it is read."""
        while (message := self.read()) is not None:
            if "method" not in message and message.get("id") == wanted:
                return message
        raise EOFError("the server ended before it answered")

    def ask_raw(self, method, params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        return self.answer(self.last_id)

    def ask(self, method, params):
        message = self.ask_raw(method, params)
        assert "result" in message, message
        return message["result"]

    def open(self, path, text=None):
        uri = pathlib.Path(path).resolve().as_uri()
        if text is None:
            text = pathlib.Path(path).read_text()
        self.versions[uri] = 1
        self.tell("textDocument/didOpen",
                  {"textDocument": {"uri": uri, "languageId": "amp", "version": 1, "text": text}})
        return uri

    def change(self, uri, *changes):
        """Of the whole text, or (start line, character, end line, character, text)."""
        self.versions[uri] += 1
        self.tell("textDocument/didChange", {
            "textDocument": {"uri": uri, "version": self.versions[uri]},
            "contentChanges": [{"text": c} if isinstance(c, str) else
                               {"range": {"start": {"line": c[0], "character": c[1]},
                                          "end": {"line": c[2], "character": c[3]}}, "text": c[4]}
                               for c in changes]})

    def at(self, method, uri, line, character):
        return self.ask("textDocument/" + method, {"textDocument": {"uri": uri},
                                                   "position": {"line": line, "character": character}})

    def of(self, method, uri):
        return self.ask("textDocument/" + method, {"textDocument": {"uri": uri}})

    def hints(self, uri, first=0, last=1 << 30):
        return self.ask("textDocument/inlayHint", {
            "textDocument": {"uri": uri}, "range": {"start": {"line": first, "character": 0},
                                                    "end": {"line": last, "character": 0}}})

    def errors(self, uri):
        """After whatever was sent: a request that is answered when diagnostics have come."""
        self.of("documentSymbol", uri)
        return self.diagnostics[uri]

    def end(self):
        self.ask("shutdown", None)
        self.tell("exit", None)
        self.process.stdin.close()
        assert self.process.stdout.read() == b""
        return self.process.wait(10)
