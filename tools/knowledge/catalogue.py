"""Find which packages have a table, and what has to be installed to read each."""

from dataclasses import dataclass

__all__ = ["CATALOGUE", "Entry", "entry_for"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One table: the top-level package, and the distributions it is read from."""

    top: str
    install: tuple[str, ...]
    only: tuple[str, ...] = ()
    """Prefixes of the modules that are read; empty: all."""
    without: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """What must be there for the package to be imported, and is not studied itself."""
    python: tuple[int, int] = (3, 11)
    """The oldest interpreter that can read its syntax; the generator itself has to run on it."""
    prepare: str = ""
    """Code to run before it is imported: a framework that refuses to be looked at unconfigured."""
    declares: tuple[tuple[str, str], ...] = ()
    """Attributes that a metaclass adds, and their types; both sides must exist in the package."""
    source_only: str = ""
    """Why it is read and not imported; empty: it is imported."""


def _entry(line: str, **more: tuple[str, ...] | tuple[tuple[str, str], ...] | tuple[int, int] | str) -> Entry:
    top, *install = line.split()
    return Entry(top, tuple(install or [top]), **more)  # type: ignore[arg-type]


_HOME_DOMAINS = (
    "alarm_control_panel binary_sensor bluetooth button calendar camera climate conversation cover "
    "device_tracker diagnostics event fan frontend http humidifier image light lock media_player mqtt "
    "notify number persistent_notification recorder remote scene select sensor siren stt switch text todo "
    "tts update vacuum water_heater weather webhook websocket_api "
)
"""The components that others are written against: entity platforms and services, not integrations."""

# Ordered so that what others build on comes first: a table is judged with the tables before it.
CATALOGUE: tuple[Entry, ...] = (
    _entry("anyio", extra=("trio",)),
    _entry("aiohttp"),
    _entry("discord discord.py"),
    _entry("httpcore", extra=("trio", "anyio", "h2", "socksio")),
    _entry("httpx"),
    _entry("starlette", extra=("httpx", "python-multipart", "itsdangerous", "jinja2")),
    _entry("fastapi", extra=("httpx", "python-multipart", "itsdangerous", "jinja2")),
    _entry("redis"),
    _entry("sqlalchemy", extra=("greenlet", "aiosqlite", "asyncpg")),
    _entry("asyncpg", extra=("asyncpg-stubs",)),
    _entry("aiosqlite"),
    _entry("openai"),
    _entry("anthropic"),
    _entry("playwright"),
    _entry("asgiref"),
    _entry(
        "django",
        extra=("django-stubs",),
        declares=(("django.db.models.base.Model.objects", "django.db.models.manager.Manager"),),
        without=("django.contrib.gis",),
        prepare="import django; from django.conf import settings as s; s.configure(); django.setup()",
    ),
    _entry("aiogram"),
    _entry(
        "telegram python-telegram-bot", extra=("apscheduler", "pytz", "httpx", "aiolimiter", "cachetools", "tornado")
    ),
    _entry("langchain_core langchain-core"),
    _entry("langgraph langgraph", extra=("langgraph-checkpoint", "langgraph-prebuilt", "langgraph-sdk")),
    _entry("langchain langchain"),
    _entry("mcp mcp", extra=("typer", "websockets", "rich")),
    _entry("fastmcp"),
    _entry("pydantic_ai pydantic-ai-slim", extra=("openai", "anthropic", "mcp")),
    _entry("agents openai-agents"),
    _entry("websockets"),
    _entry("aiofiles", extra=("types-aiofiles",)),
    _entry("psycopg", extra=("psycopg-binary", "psycopg-pool")),
    _entry("psycopg_pool psycopg-pool", extra=("psycopg", "psycopg-binary")),
    _entry("pymongo"),
    _entry("motor"),
    _entry("gridfs pymongo"),
    _entry("tortoise tortoise-orm"),
    _entry("databases", extra=("aiosqlite",)),
    _entry("beanie"),
    _entry("sqlmodel", extra=("greenlet", "aiosqlite")),
    _entry("aiomysql"),
    _entry("aiokafka"),
    _entry("aiormq"),
    _entry("aio_pika aio-pika"),
    _entry("nats nats-py"),
    _entry("aiomqtt"),
    _entry("zmq pyzmq"),
    _entry("tornado"),
    _entry("twisted twisted", only=("twisted.internet", "twisted.web", "twisted.python", "twisted.protocols")),
    _entry("telethon"),
    _entry("pyrogram kurigram", without=("pyrogram.raw", "pyrogram.errors")),
    _entry("slack_sdk slack-sdk", extra=("aiohttp", "websockets", "websocket-client", "sqlalchemy", "boto3")),
    _entry("slack_bolt slack-bolt", extra=("aiohttp", "starlette", "sanic")),
    _entry(
        "google google-genai google-cloud-pubsub google-cloud-firestore google-cloud-tasks google-cloud-secret-manager",
        only=(
            "google.genai",
            "google.pubsub_v1",
            "google.cloud.firestore_v1",
            "google.cloud.tasks_v2",
            "google.cloud.secretmanager_v1",
            "google.cloud.pubsub_v1",
            "google.cloud.firestore",
        ),
    ),
    _entry("mistralai"),
    _entry("cohere"),
    _entry("ollama"),
    _entry("groq"),
    _entry(
        "litellm",
        only=("litellm", "litellm.main", "litellm.router"),
        without=("litellm.proxy", "litellm.llms", "litellm.integrations"),
    ),
    _entry("llama_index llama-index-core", only=("llama_index.core",)),
    _entry("autogen_core autogen-core"),
    _entry("autogen_agentchat autogen-agentchat"),
    _entry("crewai"),
    _entry("temporalio"),
    _entry("prefect", only=("prefect",), without=("prefect.server", "prefect.cli", "prefect._internal")),
    _entry("distributed distributed", extra=("dask",)),
    _entry("celery"),
    _entry("dramatiq", extra=("redis", "pika")),
    _entry("arq"),
    _entry("taskiq"),
    _entry("procrastinate"),
    _entry("apscheduler"),
    _entry("aiobotocore"),
    _entry("aioboto3"),
    _entry(
        "azure azure-identity azure-storage-blob azure-cosmos azure-servicebus azure-eventhub azure-core",
        extra=("aiohttp",),
    ),
    _entry("kubernetes_asyncio"),
    _entry("aiodocker"),
    _entry("elastic_transport elastic-transport", extra=("aiohttp",)),
    _entry("elasticsearch elasticsearch", extra=("aiohttp",)),
    _entry("opensearchpy opensearch-py", extra=("aiohttp",)),
    _entry("qdrant_client qdrant-client"),
    _entry("weaviate weaviate-client"),
    _entry("chromadb"),
    _entry("pinecone pinecone", extra=("aiohttp", "aiohttp-retry")),
    _entry("neo4j"),
    _entry("httpx_sse httpx-sse"),
    _entry("sse_starlette sse-starlette"),
    _entry("tenacity", extra=("tornado", "trio")),
    _entry("backoff"),
    _entry("asyncssh"),
    _entry("aiosmtplib"),
    _entry("aiohttp_retry aiohttp-retry"),
    _entry("aiocache"),
    _entry("async_lru async-lru"),
    _entry("async_timeout async-timeout"),
    _entry("aiolimiter"),
    _entry("aiostream"),
    _entry("asyncstdlib"),
    _entry("grpc grpcio"),
    _entry("strawberry strawberry-graphql"),
    _entry("gql", extra=("aiohttp", "websockets", "httpx", "requests", "requests-toolbelt", "botocore")),
    _entry("graphql graphql-core"),
    _entry("ariadne"),
    _entry("uvicorn", extra=("httptools", "websockets", "wsproto", "watchfiles", "uvloop", "a2wsgi")),
    _entry("hypercorn"),
    _entry("werkzeug"),
    _entry("flask"),
    _entry("quart"),
    _entry("sanic", extra=("sanic-testing", "sanic-ext")),
    _entry(
        "litestar",
        extra=("jinja2", "sqlalchemy", "redis", "click", "rich", "httpx", "prometheus-client", "opentelemetry-api"),
    ),
    _entry("aiohttp_cors aiohttp-cors"),
    _entry("nicegui"),
    _entry("textual"),
    _entry("prompt_toolkit prompt-toolkit"),
    _entry(
        "channels channels",
        prepare="import django; from django.conf import settings as s; s.configure(); django.setup()",
    ),
    _entry("pytest_asyncio pytest-asyncio"),
    _entry("jupyter_client jupyter-client"),
    _entry("ipykernel"),
    _entry("nbclient"),
    _entry("zeroconf"),
    _entry("bleak"),
    _entry("trio"),
    _entry(
        "gradio gradio", only=("gradio.blocks", "gradio.events", "gradio.queueing", "gradio.routes", "gradio.helpers")
    ),
    _entry("chainlit"),
    _entry("aiortc"),
    _entry("livekit livekit livekit-agents livekit-api"),
    _entry("interactions discord-py-interactions"),
    _entry("nextcord"),
    _entry("disnake"),
    _entry("hikari"),
    _entry("twitchio"),
    _entry("ccxt", only=("ccxt.async_support",)),
    _entry("web3"),
    _entry("aioredis"),
    _entry("aiosignal"),
    _entry("aiodns"),
    _entry("aioftp"),
    _entry("aioimaplib"),
    _entry("aiosmtpd"),
    _entry("asyncmy"),
    _entry("coredis"),
    _entry("engineio python-engineio", extra=("aiohttp",)),
    _entry("socketio python-socketio", extra=("aiohttp",)),
    _entry("nio matrix-nio"),
    _entry("mautrix", extra=("asyncpg", "aiosqlite")),
    _entry("a2a a2a-sdk", extra=("fastapi", "sse-starlette", "sqlalchemy")),
    _entry("asyncpraw"),
    _entry("asyncprawcore"),
    _entry("asyncua"),
    _entry("pymodbus"),
    _entry("aioesphomeapi"),
    _entry("kasa python-kasa"),
    _entry("aiohue"),
    _entry("aiogithubapi"),
    _entry("miio python-miio"),
    _entry("nonebot nonebot2", extra=("fastapi", "aiohttp", "httpx", "websockets")),
    _entry("wavelink"),
    _entry("twikit"),
    _entry("apprise"),
    _entry("meilisearch_python_sdk meilisearch-python-sdk"),
    _entry("lancedb"),
    _entry("pymilvus"),
    _entry("surrealdb"),
    _entry("piccolo", extra=("asyncpg", "aiosqlite")),
    _entry("ormar", extra=("aiosqlite", "asyncpg")),
    _entry("odmantic"),
    _entry("fastapi_users fastapi-users", extra=("fastapi-users-db-sqlalchemy",)),
    _entry("fastcrud"),
    _entry("fastapi_limiter fastapi-limiter"),
    _entry("aiohttp_session aiohttp-session"),
    _entry("aiojobs"),
    _entry("httpx_ws httpx-ws"),
    _entry("pyppeteer"),
    _entry("nodriver"),
    _entry("curl_cffi curl-cffi"),
    _entry("fastapi_pagination fastapi-pagination", extra=("sqlalchemy", "greenlet", "httpx")),
    _entry("fastapi_cache fastapi-cache2", extra=("redis",)),
    _entry("fastapi_mail fastapi-mail"),
    _entry("cashews", extra=("redis", "diskcache")),
    _entry("janus"),
    _entry("tavily tavily-python"),
    _entry("exa_py exa-py"),
    _entry("firecrawl firecrawl-py"),
    _entry("postgrest"),
    _entry("storage3"),
    _entry("realtime"),
    _entry("supabase_auth supabase-auth"),
    _entry("supabase_functions supabase-functions"),
    _entry("huggingface_hub", only=("huggingface_hub.inference", "huggingface_hub.utils")),
    _entry("e2b"),
    _entry("replicate"),
    _entry("hydrogram"),
    _entry("telebot pyTelegramBotAPI", extra=("aiohttp",)),
    _entry("botpy qq-botpy"),
    _entry("aiopg"),
    _entry("influxdb_client influxdb-client", extra=("aiohttp", "aiocsv")),
    _entry("clickhouse_connect clickhouse-connect", extra=("aiohttp",)),
    _entry("asynch"),
    _entry("turbopuffer"),
    _entry("zendriver"),
    _entry("patchright"),
    _entry("tweepy", extra=("aiohttp", "async-lru")),
    _entry("aiogram_dialog aiogram-dialog"),
    _entry("acp agent-client-protocol"),
    _entry("aiocoap"),
    _entry("xai_sdk xai-sdk"),
    _entry("keycloak python-keycloak"),
    _entry("together"),
    _entry("deepgram deepgram-sdk"),
    _entry("assemblyai"),
    _entry("saq", extra=("redis", "psycopg")),
    _entry("aiomcache"),
    _entry("glide valkey-glide"),
    _entry("stagehand"),
    _entry("daytona"),
    _entry("niquests"),
    _entry("key_value py-key-value-aio", extra=("redis", "pydantic", "cachetools")),
    _entry("aioslimproto"),
    _entry("aiosonos"),
    _entry("hass_client hass-client"),
    _entry(
        "homeassistant",
        python=(3, 13),
        source_only="it wants some sixty pinned packages, several of them compiled",
        only=tuple(
            f"homeassistant.{part}"
            for part in (
                "core config_entries data_entry_flow helpers util exceptions loader setup auth "
                + " ".join(f"components.{domain}" for domain in _HOME_DOMAINS.split())
            ).split()
        ),
    ),
)


def entry_for(top: str) -> Entry | None:
    """The entry of a top-level package."""
    return next((entry for entry in CATALOGUE if entry.top == top), None)
