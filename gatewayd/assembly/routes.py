"""The routes over the services, and the two applications over the routes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from gatewayd import __version__
from gatewayd.accounts.records import Actor
from gatewayd.assembly.batches import batch_rows, control_batch_rows
from gatewayd.assembly.consumption.limits import control_limit_rows, limit_rows
from gatewayd.assembly.document_routes import control_document_rows, public_document_rows
from gatewayd.assembly.documents import DocumentServices
from gatewayd.assembly.event_routes import control_live_rows, public_live_rows
from gatewayd.assembly.indexes import describe_index, find_cache_state, find_recall
from gatewayd.assembly.media_routes import media_rows
from gatewayd.assembly.metrics.control_usage import control_usage_rows
from gatewayd.assembly.metrics.metering import usage_rows
from gatewayd.assembly.metrics.readers import make_exposition
from gatewayd.assembly.metrics.services import metrics_access
from gatewayd.assembly.plugin_routes import control_model_rows, control_plugin_rows, public_plugin_rows
from gatewayd.assembly.response_routes import public_response_rows
from gatewayd.assembly.resumption import make_resumption_edges
from gatewayd.assembly.scim import ScimServices
from gatewayd.assembly.services import GatewayServices
from gatewayd.assembly.sign_in import make_trusted_headers
from gatewayd.assembly.upkeep.audit import control_audit_rows
from gatewayd.assembly.upkeep.doctor import control_doctor_rows
from gatewayd.assembly.upkeep.garbage import control_garbage_rows
from gatewayd.assembly.upkeep.nodes import control_node_rows
from gatewayd.assembly.upkeep.privacy import control_privacy_rows
from gatewayd.assembly.upkeep.state import control_state_rows
from gatewayd.catalog.runtimes import ModelRuntimes
from gatewayd.dialects.tokenizers import count_locally
from gatewayd.http.access_revocation import AccessRevocation
from gatewayd.http.app import Application, build_application
from gatewayd.http.connections.admission import RequestAdmission
from gatewayd.http.connections.capacity import DescriptorBudget, control_descriptor_limits
from gatewayd.http.connections.minimum_rate import MinimumRate, MinimumRates
from gatewayd.http.connections.request_uses import ConcurrencyBounds, ConcurrencyRules
from gatewayd.http.control import chat as control_chat
from gatewayd.http.control import database as control_database
from gatewayd.http.control import health as control_health
from gatewayd.http.control import logs as control_logs
from gatewayd.http.control import metrics as control_metrics
from gatewayd.http.control import settings as control_settings
from gatewayd.http.control.accounts import groups as control_groups
from gatewayd.http.control.accounts import identities as control_identities
from gatewayd.http.control.accounts import invitations as control_invitations
from gatewayd.http.control.accounts import keys as control_keys
from gatewayd.http.control.accounts import links as control_links
from gatewayd.http.control.accounts import permissions as control_permissions
from gatewayd.http.control.accounts import scim as control_scim
from gatewayd.http.control.accounts import scim_tokens as control_scim_tokens
from gatewayd.http.control.accounts import sessions as control_sessions
from gatewayd.http.control.accounts import setup as control_setup
from gatewayd.http.control.accounts import users as control_users
from gatewayd.http.control.impersonation import ControlActors
from gatewayd.http.control.middleware import ControlEdge
from gatewayd.http.control.models import models as control_models
from gatewayd.http.control.models.providers import ControlProviderRoutes
from gatewayd.http.control.peer import PeerRules
from gatewayd.http.control.rows import check_complete
from gatewayd.http.control.transactions import WriteTransactions
from gatewayd.http.daemon_state import DaemonFacts
from gatewayd.http.fast_path import FastRows
from gatewayd.http.middleware import EdgeOptions, EdgeServices, PublicEdge
from gatewayd.http.public.accounts.admin import AdminRoutes
from gatewayd.http.public.accounts.auths import AuthRoutes
from gatewayd.http.public.accounts.directory import DirectoryRoutes
from gatewayd.http.public.accounts.groups import GroupRoutes
from gatewayd.http.public.accounts.header_sign_in import HeaderSignIn
from gatewayd.http.public.accounts.identities import IdentityRoutes
from gatewayd.http.public.accounts.invitations import InvitationRoutes
from gatewayd.http.public.accounts.keys import KeyRoutes
from gatewayd.http.public.accounts.oauth import OAuthRoutes, OAuthServices
from gatewayd.http.public.accounts.permissions import PermissionRoutes
from gatewayd.http.public.accounts.session_replies import CookieOptions, SessionReplies
from gatewayd.http.public.accounts.sessions import SessionRoutes
from gatewayd.http.public.accounts.users import UserRoutes
from gatewayd.http.public.administration.provider_forms import ProviderFormRoutes
from gatewayd.http.public.administration.status import StatusRoutes, StatusServices
from gatewayd.http.public.completions.chat import ChatRoutes
from gatewayd.http.public.completions.embeddings import EmbeddingRoutes
from gatewayd.http.public.completions.messages import MessageRoutes
from gatewayd.http.public.config import ClientConfig, SiteFacts
from gatewayd.http.public.docs import DocsRoutes
from gatewayd.http.public.events import EventRoutes, EventServices
from gatewayd.http.public.health import HealthRoutes
from gatewayd.http.public.metrics import MetricsRoutes
from gatewayd.http.public.model_runtimes.admin import RuntimeAdminRoutes
from gatewayd.http.public.model_runtimes.conversion import RuntimeConversion
from gatewayd.http.public.model_runtimes.routes import RuntimeRoutes
from gatewayd.http.public.model_runtimes.unknown_paths import RuntimeOthersRoutes
from gatewayd.http.public.models.routes import PublicModelRoutes
from gatewayd.http.public.scim.discovery import ScimDiscoveryRoutes
from gatewayd.http.public.scim.routes import ScimGroupRoutes, ScimUserRoutes
from gatewayd.http.responses.resumable import ResumableAnswers
from gatewayd.http.responses.streams import AnswerStreams
from gatewayd.http.routes import Route
from gatewayd.http.scim_auth import ScimAuthenticator
from gatewayd.http.socketio.sessions import PATH, SocketRoutes
from gatewayd.http.web.policies import PageRules
from gatewayd.http.web.routes import PageRoutes
from gatewayd.pipeline.embeddings import EmbeddingService
from gatewayd.pipeline.fast_embeddings import FastEmbeddings
from gatewayd.pipeline.fast_path import FastChats
from gatewayd.pipeline.filters.inputs import InputFilters
from gatewayd.pipeline.functions.model_actions import ModelActions
from gatewayd.pipeline.token_counts import TokenCounts
from gatewayd.settings import Settings


@dataclass(frozen=True, slots=True)
class StreamingRoutes:
    """The routes of event streams and sockets, and the streams of answers."""

    events: EventRoutes
    sockets: SocketRoutes
    streams: AnswerStreams


def make_public(
    services: GatewayServices, edge_services: EdgeServices, streaming: StreamingRoutes
) -> Application:
    """Return the public application: every row of gatewayd-api(7)."""
    settings = services.settings
    options = EdgeOptions(
        key_header=settings.custom_api_key_header,
        allowed_origins=tuple(settings.cors_allow_origin),
        trusted_proxies=tuple(settings.trusted_proxies),
        site_url=partial(page_url, services),
    )
    edge = PublicEdge(edge_services, services.tasks, options)
    rows = public_rows(services, streaming)
    if settings.env == "dev":
        rows = [*rows, *DocsRoutes(rows, title=settings.webui_name, version=__version__).routes()]
    observation = services.monitoring.observation()
    return build_application(
        edge,
        rows,
        body_limit=settings.request_body_limit,
        rates=make_rates(settings),
        room=services.room,
        observation=observation,
        trail=services.audit.trail,
        fast_rows=FastRows(edge, observation) if settings.fast_path else None,
    )


def make_rates(settings: Settings) -> MinimumRates:
    """Return the minimum rates of peers."""
    return MinimumRates(
        MinimumRate(settings.client_body_min_rate, settings.client_body_timeout),
        MinimumRate(settings.send_min_rate, settings.send_timeout),
    )


def concurrency_rules(settings: Settings) -> ConcurrencyRules:
    """Return the concurrency limits of one account and of one address."""
    account = ConcurrencyBounds(
        settings.account_connection_limit,
        settings.account_upload_limit,
        settings.account_download_limit,
        settings.account_stream_limit,
    )
    address = ConcurrencyBounds(
        settings.address_connection_limit,
        settings.address_upload_limit,
        settings.address_download_limit,
        settings.address_stream_limit,
    )
    return ConcurrencyRules(account, address)


def make_edge_services(services: GatewayServices) -> EdgeServices:
    """Return the services that authenticate callers of the public application and revoke their access."""
    provisioning, shut_out = services.provisioning, AccessRevocation()
    services.accounts.changes.subscribe(shut_out.on_change)
    services.change_log.running = shut_out.running
    door = ScimAuthenticator(
        provisioning.tokens,
        provisioning.activity,
        provisioning.provider,
        site=provisioning.site,
        freshness=services.change_log.freshness,
    )
    return EdgeServices(
        services.accounts.authenticator,
        door,
        shut_out,
        services.live.tickets,
        make_trusted_headers(services.settings),
    )


def make_streaming_routes(services: GatewayServices, edge_services: EdgeServices) -> StreamingRoutes:
    """Return the event stream, Socket.IO and the answers; a revoked account gets no more events."""
    live = services.live
    event_services = EventServices(live.events, live.hub, live.calls, live.tickets, live.chats.chats)
    settings = services.settings
    events = EventRoutes(
        event_services,
        body_limit=settings.request_body_limit,
        has_external_tools=settings.enable_forward_user_info_headers,
    )
    services.accounts.changes.subscribe(events.on_change)

    async def identify(token: str) -> Actor:
        return await edge_services.shut_out.identify_again(
            lambda: edge_services.accounts.authenticate(token, "GET", PATH)
        )

    admission = RequestAdmission(tuple(settings.trusted_proxies))
    headers = edge_services.trusted_headers
    check = None if headers is None else headers.check
    sockets = SocketRoutes(live.hub, live.calls, identify, services.tasks, admission, check)
    return StreamingRoutes(events, sockets, AnswerStreams(head_seconds=settings.stream_head_timeout))


def make_header_sign_in(services: GatewayServices) -> HeaderSignIn | None:
    """Return the sign-in by trusted headers, None without one."""
    headers = make_trusted_headers(services.settings)
    return None if headers is None else HeaderSignIn(headers, services.accounts.external.resolve)


def site_facts(settings: Settings) -> SiteFacts:
    """Return the configured facts of the site."""
    has_form = settings.enable_login_form and settings.enable_password_auth
    return SiteFacts(
        settings.webui_name,
        __version__,
        enable_login_form=has_form,
        ldap_label=(settings.ldap_server_label or "LDAP") if settings.enable_ldap else "",
        auth_trusted_header=bool(settings.webui_auth_trusted_email_header),
    )


def sign_in_rows(services: GatewayServices, replies: SessionReplies) -> Sequence[Route]:
    """Return the rows of sign-in by all ways, and of sessions, invitations and linked providers."""
    accounts, identity = services.accounts, services.identity

    def site_url() -> str:
        return accounts.runtime.text("WEBUI_URL")

    async def sign_out_address(session_id: str, base: str) -> str:
        return await identity.sign_out_address(session_id, site_url() or base)

    oauth = OAuthServices(
        login=identity.login,
        logout=identity.logout,
        exchange=identity.exchange,
        external=accounts.external,
        links=identity.links,
        sessions=accounts.sessions,
        site_url=site_url,
        accepts_logout=lambda: identity.switches.accepts_logout,
    )
    return [
        *AuthRoutes(
            accounts.users,
            accounts.sign_in,
            accounts.sign_up,
            replies,
            sign_out_address,
            make_header_sign_in(services),
        ).routes(),
        *DirectoryRoutes(accounts.directory, replies).routes(),
        *SessionRoutes(accounts.sessions, accounts.users).routes(),
        *InvitationRoutes(
            accounts.links.invitations, accounts.links.sign_in_links, replies, partial(page_url, services)
        ).routes(),
        *OAuthRoutes(oauth, replies).routes(),
        *IdentityRoutes(identity.links, accounts.sessions, accounts.sign_in).routes(),
    ]


def public_rows(services: GatewayServices, streaming: StreamingRoutes) -> Sequence[Route]:
    """Return the rows of the public application, in the order of gatewayd-api(7)."""
    settings, accounts = services.settings, services.accounts
    config = ClientConfig(
        site_facts(settings),
        accounts.runtime,
        accounts.permissions,
        accounts.users,
        accounts.sign_up,
        services.identity,
    )
    cookie = CookieOptions(
        same_site=settings.webui_auth_cookie_same_site, secure=settings.webui_auth_cookie_secure
    )
    replies = SessionReplies(accounts.sessions, accounts.key_rules, accounts.runtime, cookie)
    limit = settings.request_body_limit
    filters, runtimes = services.extensions.filters, ModelRuntimes(services.catalog)
    embeddings, streams = EmbeddingService(services.catalog, filters), streaming.streams
    again = make_resumption_edges(settings, services.resumption, streams)
    fast = FastChats(services.catalog, filters, services.pipeline.reasoning)
    chats = ChatRoutes(
        services.answering.runs, body_limit=limit, streams=streams, repeatable=again.repeatable, fast=fast
    )
    conversion = RuntimeConversion(services.pipeline, embeddings, streams=streams)
    vectors, inputs = FastEmbeddings(services.catalog, filters), InputFilters(services.catalog, filters)
    counts = TokenCounts(services.catalog, inputs, count_locally, reasoning=services.pipeline.reasoning)
    messages = MessageRoutes(
        services.pipeline, counts, body_limit=limit, streams=streams, repeatable=again.repeatable, fast=fast
    )
    return [
        *state_rows(services, config),
        *PublicModelRoutes(services.catalog, ModelActions(services.extensions.registry)).routes(),
        *chats.routes(),
        *messages.routes(),
        *again.streams.routes(),
        *EmbeddingRoutes(embeddings, body_limit=limit, fast=vectors).routes(),
        *public_response_rows(services, streams, again, counts.local),
        *media_rows(services, streams),
        *batch_rows(services.batches, again.writes, body_limit=limit),
        *RuntimeRoutes(runtimes, conversion, inputs, body_limit=limit).routes(),
        *RuntimeAdminRoutes(runtimes, body_limit=limit).routes(),
        *RuntimeOthersRoutes(runtimes, inputs, body_limit=limit).routes(),
        *public_document_rows(settings, accounts, services.documents, again.writes),
        *public_live_rows(
            services.live, streaming.events, services.extensions, services.answering, body_limit=limit
        ),
        *public_plugin_rows(services.extensions, services.servers, accounts),
        *streaming.sockets.routes(),
        *sign_in_rows(services, replies),
        *KeyRoutes(accounts.keys, accounts.users, again.writes).routes(),
        *limit_rows(services.limits, accounts),
        *usage_rows(services.metering),
        *AdminRoutes(accounts.runtime, accounts.contact).routes(),
        *ProviderFormRoutes(services.providers, services.catalog).routes(),
        *StatusRoutes(status_services(services), __version__).routes(),
        *UserRoutes(accounts.users, accounts.groups, accounts.sessions).routes(),
        *PermissionRoutes(accounts.permissions).routes(),
        *GroupRoutes(accounts.groups, accounts.users).routes(),
        *scim_rows(services.provisioning),
        *PageRoutes(settings.webui_name, page_rules(settings), services.tasks, settings.page_module).routes(),
    ]


def scim_rows(provisioning: ScimServices) -> Sequence[Route]:
    """Return the rows of identity providers."""
    return [
        *ScimUserRoutes(provisioning.users, provisioning.provider).routes(),
        *ScimGroupRoutes(provisioning.groups, provisioning.provider).routes(),
        *ScimDiscoveryRoutes().routes(),
    ]


def state_rows(services: GatewayServices, config: ClientConfig) -> Sequence[Route]:
    """Return the rows of health and of the metrics."""
    exposition = make_exposition(services)
    return [
        *HealthRoutes(services.health, config, __version__).routes(),
        *MetricsRoutes(exposition.render, lambda: metrics_access(services.settings)).routes(),
    ]


def status_services(services: GatewayServices) -> StatusServices:
    """Return what the status of the gateway is read from."""
    provisioning = services.provisioning
    return StatusServices(
        services.health,
        services.catalog,
        _workings(services.documents),
        provisioning.keeper,
        provisioning.directory,
        provisioning.activity,
        provisioning.provider,
    )


def page_rules(settings: Settings) -> PageRules:
    """Return what the page may do beyond its strict policy."""
    return PageRules(settings.enable_execute_events, settings.embed_hosts)


def page_url(services: GatewayServices) -> str:
    """Return the public address of the gateway, "" when it is not known."""
    return services.accounts.runtime.text("WEBUI_URL")


def local_url(settings: Settings) -> str:
    """Return an address of the gateway for this machine."""
    host = "localhost" if settings.host in {"", "0.0.0.0", "::"} else settings.host  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def make_control(services: GatewayServices) -> Application:
    """Return the control application."""
    peers = PeerRules(services.settings.control_group, os.getuid())
    edge = ControlEdge(peers, services.tasks)
    return build_application(
        edge,
        control_rows(services),
        body_limit=services.settings.request_body_limit,
        rates=make_rates(services.settings),
        room=DescriptorBudget(control_descriptor_limits()),
        trail=services.audit.trail,
    )


def control_rows(services: GatewayServices) -> Sequence[Route]:
    """Return the rows of the control application, noun by noun; see `check_complete`."""
    accounts = services.accounts
    users, groups = accounts.users, accounts.groups
    writes = WriteTransactions(accounts.commits)
    viewers = ControlActors(users, accounts.key_rules, accounts.permissions)
    rows = [
        *control_setup.SetupRoutes(accounts.setup, writes).routes(),
        *control_users.ControlUserRoutes(users, groups, writes, services.limits.quotas).routes(),
        *control_sessions.ControlSessionRoutes(accounts.sessions, users, groups, writes).routes(),
        *control_invitations.ControlInvitationRoutes(
            accounts.links.invitations,
            accounts.links.sign_in_links,
            users,
            groups,
            writes,
            lambda: page_url(services) or local_url(services.settings),
        ).routes(),
        *control_identities.ControlIdentityRoutes(
            services.identity.links, accounts.sessions, users, groups, writes
        ).routes(),
        *control_groups.ControlGroupRoutes(groups, users, writes).routes(),
        *control_permissions.ControlPermissionRoutes(accounts.permissions, groups, users, writes).routes(),
        *control_keys.ControlKeyRoutes(accounts.keys, users, writes).routes(),
        *control_models.ControlModelRoutes(services.catalog, viewers, users, groups, writes).routes(),
        *control_model_rows(
            services.catalog, services.documents.collections, services.extensions, accounts, viewers, writes
        ),
        *ControlProviderRoutes(services.providers).routes(),
        *control_plugin_rows(services.extensions, services.servers, accounts, viewers, writes),
        *control_limit_rows(services.limits, accounts, writes),
        *control_usage_rows(services),
        *control_batch_rows(services.batches, accounts),
        *control_live_rows(services.live, services.answering, accounts, viewers),
        *control_document_rows(services.settings, services.documents, accounts, viewers, writes),
        *control_links.LinkRoutes(services.provisioning.links, users, groups, writes).routes(),
        *control_scim_tokens.ScimTokenRoutes(services.provisioning.keeper).routes(),
        *control_scim.ScimStateRoutes(
            services.provisioning.keeper,
            services.provisioning.directory,
            services.provisioning.activity,
            services.provisioning.provider,
        ).routes(),
        *control_settings.SettingRoutes(accounts.runtime, writes).routes(),
        *control_health.ControlHealthRoutes(
            services.health, services.catalog, __version__, _workings(services.documents)
        ).routes(),
        *control_logs.ControlLogRoutes(services.monitoring.levels).routes(),
        *control_metrics.ControlMetricsRoutes(make_exposition(services).render).routes(),
        *control_database.ControlDatabaseRoutes(services.database_check).routes(),
        *control_upkeep_rows(services, viewers),
        *control_node_rows(writes),
        *control_chat.ControlChatRoutes(
            services.pipeline,
            services.catalog,
            services.documents.collections,
            viewers,
            ResumableAnswers(services.resumption.streams, AnswerStreams()),
        ).routes(),
    ]
    return check_complete(rows)


def control_upkeep_rows(services: GatewayServices, viewers: ControlActors) -> Sequence[Route]:
    """Return the rows of what keeps the gateway in order, and of what it keeps of people."""
    return [
        *control_audit_rows(services.audit),
        *control_garbage_rows(services),
        *control_privacy_rows(services),
        *control_doctor_rows(services),
        *control_state_rows(services, viewers),
    ]


def _workings(documents: DocumentServices) -> DaemonFacts:
    index = documents.engines.index
    return DaemonFacts(
        documents.confinement,
        describe_index(index),
        partial(find_recall, index),
        partial(find_cache_state, index),
    )
