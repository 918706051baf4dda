"""Texts with made-up secrets of many providers in them, and harmless texts that look alike. Generated from a seed, so that no
file of the repository holds anything that resembles a key."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import uuid
import zlib

import msgspec

_ALNUM = string.ascii_letters + string.digits
_UPPER = string.ascii_uppercase + string.digits
_LOWER = string.ascii_lowercase + string.digits
_HEX = "0123456789abcdef"
_URL = _ALNUM + "-_"
_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase


class Planted(msgspec.Struct, frozen=True):
    """A secret of a kind, in the text it stands in."""

    kind: str
    before: str
    secret: str
    after: str = ""

    @property
    def text(self) -> str:
        return self.before + self.secret + self.after


def planted(seed: int = 1) -> list[Planted]:
    """One of each kind, every character of the secrets by chance."""
    r = random.Random(seed)

    def some(alphabet: str, length: int) -> str:
        return "".join(r.choice(alphabet) for _ in range(length))

    def of_github(prefix: str) -> str:
        body = some(_ALNUM, 30)
        checksum, digits = zlib.crc32(body.encode()), ""
        for _ in range(6):
            checksum, rest = divmod(checksum, 62)
            digits = _BASE62[rest] + digits
        return f"{prefix}_{body}{digits}"

    def segment(value: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    def pem(label: str, lines: int) -> str:
        body = "\n".join(base64.b64encode(r.randbytes(48)).decode() for _ in range(lines))
        return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"

    head, claims = segment({"alg": "HS256", "typ": "JWT"}), segment({"sub": str(r.getrandbits(40)), "iat": 1516239022})
    jwt = f"{head}.{claims}.{some(_URL, 43)}"
    openai_middle = "T3BlbkFJ"
    return [
        Planted("OpenAI, old", "OPENAI_API_KEY=", f"sk-{some(_ALNUM, 20)}{openai_middle}{some(_ALNUM, 20)}", "\n"),
        Planted("OpenAI, project", 'key = "', f"sk-proj-{some(_URL, 74)}{openai_middle}{some(_URL, 74)}", '"'),
        Planted("OpenAI, service", "using ", f"sk-svcacct-{some(_URL, 74)}{openai_middle}{some(_URL, 74)}", " now"),
        Planted("OpenAI, as a proxy shows it", "using ", f"sk-{some(_ALNUM, 48)}", " now"),
        Planted("Anthropic", "x-api-key: ", f"sk-ant-api03-{some(_URL, 93)}AA", "\n"),
        Planted("Anthropic, admin", "", f"sk-ant-admin01-{some(_URL, 93)}AA", ""),
        Planted("Anthropic, login", "CLAUDE_CODE_OAUTH_TOKEN=", f"sk-ant-oat01-{some(_URL, 93)}AA", "\n"),
        Planted("Google", "GEMINI_API_KEY=", f"AIzaSy{some(_URL, 33)}", "\n"),
        Planted("Google, in an address", "GET /v1/models?key=", f"AIzaSy{some(_URL, 33)}", "&alt=json"),
        Planted("Google, login", "access ", f"ya29.a0{some(_URL, 150)}", "\n"),
        Planted("Google, client", '"client_secret": "', f"GOCSPX-{some(_URL, 28)}", '"'),
        Planted("AWS, id", "aws_access_key_id = ", f"AKIA{some('ABCDEFGHIJKLMNOPQRSTUVWXYZ234567', 16)}", "\n"),
        Planted("AWS, secret", "aws_secret_access_key = ", some(_ALNUM + "/+", 40), "\nregion = eu-1\n"),
        Planted("AWS, session", "AWS_SESSION_TOKEN=", f"IQoJb3JpZ2luX2Vj{some(_ALNUM + '/+', 300)}=", "\n"),
        Planted("Azure OpenAI", "AZURE_OPENAI_API_KEY=", some(_HEX, 32), "\n"),
        Planted(
            "Azure storage",
            "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=",
            base64.b64encode(r.randbytes(64)).decode(),
            ";EndpointSuffix=core.windows.net",
        ),
        Planted("Azure, client", "AZURE_CLIENT_SECRET=", f"{some(_ALNUM, 3)}8Q~{some(_ALNUM + '_.~-', 34)}", "\n"),
        Planted("GitHub, classic", "remote: https://", of_github("ghp"), "@github.com/a/b.git"),
        Planted("GitHub, fine-grained", "token ", f"github_pat_{some(_ALNUM, 22)}_{some(_ALNUM, 59)}", "\n"),
        Planted("GitHub, login", "", of_github("gho"), " ok"),
        Planted("GitHub, action", "GITHUB_TOKEN: ", of_github("ghs"), "\n"),
        Planted("GitLab", "PRIVATE-TOKEN: ", f"glpat-{some(_URL, 20)}", "\n"),
        Planted("Slack, bot", "SLACK=", f"xoxb-{some(string.digits, 12)}-{some(string.digits, 12)}-{some(_ALNUM, 24)}"),
        Planted("Slack, app", "use ", f"xapp-1-A{some(_UPPER, 10)}-{some(string.digits, 13)}-{some(_LOWER, 64)}", " x"),
        Planted(
            "Slack, hook",
            "curl https://hooks.slack.com/services/",
            f"T{some(_UPPER, 10)}/B{some(_UPPER, 10)}/{some(_ALNUM, 24)}",
            " -d x",
        ),
        Planted("Stripe", "STRIPE_SECRET=", f"sk_live_{some(_ALNUM, 24)}", "\n"),
        Planted("Stripe, restricted", "pay ", f"rk_live_{some(_ALNUM, 99)}", "\n"),
        Planted("npm", "//registry.npmjs.org/:_authToken=", f"npm_{some(_ALNUM, 36)}", "\n"),
        Planted("PyPI", "password = ", f"pypi-AgEIcHlwaS5vcmc{some(_URL, 155)}", "\n"),
        Planted("Hugging Face", "hf auth login --token ", f"hf_{some(string.ascii_letters, 34)}", "\n"),
        Planted("Groq", "GROQ_API_KEY=", f"gsk_{some(_ALNUM, 20)}WGdyb3FY{some(_ALNUM, 24)}", "\n"),
        Planted("xAI", "XAI_API_KEY=", f"xai-{some(_ALNUM, 80)}", "\n"),
        Planted("Mistral", "MISTRAL_API_KEY=", some(_ALNUM, 32), "\n"),
        Planted("OpenRouter", "Error: bad key ", f"sk-or-v1-{some(_HEX, 64)}", "."),
        Planted("Perplexity", "use ", f"pplx-{some(_ALNUM, 48)}", "\n"),
        Planted("DeepSeek", "DEEPSEEK_API_KEY=", f"sk-{some(_HEX, 32)}", "\n"),
        Planted("Replicate", "REPLICATE_API_TOKEN=", f"r8_{some(_ALNUM, 37)}", "\n"),
        Planted("Twilio", "TWILIO_AUTH_TOKEN=", some(_HEX, 32), "\n"),
        Planted("SendGrid", "mail ", f"SG.{some(_URL, 22)}.{some(_URL, 43)}", "\n"),
        Planted("Mailgun", "MAILGUN_API_KEY=", f"key-{some(_HEX, 32)}", "\n"),
        Planted("Telegram", "bot ", f"{some('123456789', 10)}:AA{some(_URL, 33)}", "\n"),
        Planted("Discord", "DISCORD_TOKEN=", f"M{some(_ALNUM, 23)}.{some(_ALNUM, 6)}.{some(_URL, 27)}", "\n"),
        Planted("DigitalOcean", "do ", f"dop_v1_{some(_HEX, 64)}", "\n"),
        Planted("Databricks", "db ", f"dapi{some(_HEX, 32)}", "\n"),
        Planted("Docker", "docker login -u me -p ", f"dckr_pat_{some(_URL, 27)}", "\n"),
        Planted("Linear", "lin ", f"lin_api_{some(_ALNUM, 40)}", "\n"),
        Planted("Notion", "use ", f"ntn_{some(string.digits, 11)}{some(_ALNUM, 35)}", "\n"),
        Planted("Shopify", "shop ", f"shpat_{some(_HEX, 32)}", "\n"),
        Planted("Vault", "VAULT_TOKEN=", f"hvs.{some(_URL, 95)}", "\n"),
        Planted("JWT", "Set token ", jwt, " for it"),
        Planted("PEM", "", pem("RSA PRIVATE KEY", 16), "\nafter"),
        Planted("PEM, PKCS 8", "key:\n", pem("PRIVATE KEY", 16), "\nafter"),
        Planted("SSH", "", pem("OPENSSH PRIVATE KEY", 7), "\nafter"),
        Planted("PEM in JSON", '{"private_key": "', pem("PRIVATE KEY", 16).replace("\n", "\\n"), '\\n"}'),
        Planted("Postgres", "DATABASE_URL=postgres://app:", some(_ALNUM, 16), "@db.example.com:5432/app\n"),
        Planted("Mongo", "mongodb+srv://root:", some(_ALNUM, 20), "@cluster0.ab1cd.mongodb.net/x"),
        Planted("Redis", "redis://:", some(_ALNUM, 24), "@cache:6379/0"),
        Planted("basic login", "git clone https://bob:", some(_ALNUM, 14), "@git.example.com/x.git"),
        Planted("password in Python", "password = '", some(_ALNUM, 12), "'\n"),
        Planted("password in YAML", "  password: ", some(_ALNUM, 14), "\n"),
        Planted("password in JSON", '{"user": "a", "password": "', some(_ALNUM, 14), '"}'),
        Planted("password by hand", "DB_PASSWORD=", "correct-horse-battery", "\n"),
        Planted("bearer", "Authorization: Bearer ", some(_ALNUM, 40), "\n"),
        Planted("bearer in curl", "curl -H 'Authorization: Bearer ", some(_ALNUM, 32), "' https://x"),
        Planted("basic", "Authorization: Basic ", base64.b64encode(f"me:{some(_ALNUM, 12)}".encode()).decode(), "\n"),
        Planted("curl login", "curl -u admin:", some(_ALNUM, 12), " https://x"),
        Planted("cookie", "Cookie: session=", some(_HEX, 40), "\n"),
        Planted(".env", "NODE_ENV=test\nSECRET_KEY=", some(_ALNUM, 40), "\nPORT=80\n"),
        Planted(".env, exported", "export MY_SERVICE_TOKEN=", some(_HEX, 40), "\n"),
        Planted("netrc", "machine example.com login me password ", some(_ALNUM, 16), "\n"),
        Planted("signed address", "https://b.s3.amazonaws.com/x?a=1&X-Amz-Signature=", some(_HEX, 64), "&b=2"),
        Planted("flag", "mysql --password=", some(_ALNUM, 12), " -h db"),
    ]


def harmless(seed: int = 2) -> list[str]:
    """Texts with nothing secret in them: hashes, ids, code, lock files, placeholders."""
    r = random.Random(seed)

    def some(alphabet: str, length: int) -> str:
        return "".join(r.choice(alphabet) for _ in range(length))

    def digest(name: str) -> str:
        return hashlib.new(name, r.randbytes(9)).hexdigest()

    def b64(size: int) -> str:
        return base64.b64encode(r.randbytes(size)).decode()

    texts: list[str] = []
    for _ in range(12):
        texts += [
            f"commit {digest('sha1')}\nAuthor: A <a@example.com>\n",
            f"{digest('sha1')[:7]} tui: the key of a list is its row",
            f"{digest('sha256')}  dist/ctxchat-0.1.0.tar.gz",
            f"index {digest('sha1')[:7]}..{digest('sha1')[:7]} 100644",
            f'"integrity": "sha512-{b64(64)}"',
            f'    {{ url = "https://files.example.org/a.whl", hash = "sha256:{digest("sha256")}", size = 12 }},',
            f"golang.org/x/text v0.3.0 h1:{b64(32)}",
            f"id: {uuid.UUID(int=r.getrandbits(128))}",
            f"FROM python@sha256:{digest('sha256')}",
            f"![x](data:image/png;base64,iVBORw0KGgo{b64(200)})",
            f"md5 {digest('md5')} {digest('md5')}",
            f"  0x{some(_HEX, 16)} in frame_{some(_HEX, 4)} () from /lib/x.so",
            f'W/"{some(_HEX, 32)}" etag',
            f"app.{some(_HEX, 8)}.js   {r.randrange(999)} kB",
            f"session {r.getrandbits(60)} of {some(_LOWER, 8)}-{some(_LOWER, 4)}",
            f"!function(e,t){{var n={{}};function r(i){{if(n[i])return n[i].exports;{some(_LOWER, 3)}(e)}}}}(this);",
        ]
    return [
        *texts,
        "OPENAI_API_KEY=sk-...",
        'api_key = "sk-..."',
        "export ANTHROPIC_API_KEY=<your key>",
        "ANTHROPIC_API_KEY=your-key-here",
        'API_KEY = "YOUR_API_KEY"',
        "password=$DB_PASSWORD",
        "password: ${DB_PASSWORD}",
        "password: {{ db_password }}",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer ${{ secrets.GITHUB_TOKEN }}",
        "Authorization: Bearer <token>",
        "curl -H 'Authorization: Bearer YOUR_TOKEN' https://x",
        "postgres://user:password@localhost/db",
        "postgres://${USER}:${PASSWORD}@localhost/db",
        "https://user:***@example.com/x",
        "password = getpass.getpass()",
        'password = os.environ["DB_PASSWORD"]',
        "api_key: str | None = None",
        "def login(user: str, password: str) -> Token:",
        "self.token = token_from(request)",
        "token = tokens[0]",
        "const token = await getToken(user);",
        "if (password !== confirmPassword) {",
        "max_tokens=4096",
        "primary_key=True",
        "sort_key = make_key(row)",
        'key="row-12"',
        "cache-key: main",
        "keyboard: querty1234",
        "key: value",
        "The next token: 12345678",
        "a token: the unit a model counts in",
        "Enter your password: ",
        "The secret is to keep calm.",
        "pwd: prints the folder",
        "PWD=/home/me/project1 OLDPWD=/home/me2/x",
        "SSH_AUTH_SOCK=/run/user/1000/keyring/ssh",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        'if line.startswith("-----BEGIN PRIVATE KEY-----"):',
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF" + some(_ALNUM, 40) + " me@host",
        "import { tokenize } from './sk-learn-tokenizer'",
        "the sk-learn-like-interface-of-the-module is stable",
        "task-list-of-the-whole-project-with-many-words",
        '{"secret": null, "password": true}',
        '{"type": "string", "format": "password"}',
        "https://x/?page=1234567&sort=name",
        "docker run -u 1000:1000 alpine",
        "Cookie: a small cake",
        "AWS_REGION=eu-central-1",
        "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
        "GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "re.compile(r'gh[pousr]_[A-Za-z0-9]{36}')",
        "secret_name: my-app-secrets",
        "tokenizer = AutoTokenizer.from_pretrained('gpt2-medium')",
        "total_tokens: 123456, cached_tokens: 1024",
        "  token=$(cat /run/secrets/token)",
    ]
