"""A session of the OpenAI Agents SDK, kept in a vault (the extra `openai-agents`).

await Runner.run(agent, "Which database?", session=VaultSession("t1", mdmem.open("memories")))
"""

from __future__ import annotations

from asyncio import to_thread
from typing import TYPE_CHECKING, Any, cast

from mdmem.errors import ExtraMissing

try:
    from agents.memory import Session, SessionSettings
    from agents.memory.session_settings import resolve_session_limit
except ImportError as error:
    raise ExtraMissing(extra="openai-agents", package="openai-agents") from error

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

    from mdmem.facade.memory import Memory


class VaultSession(Session):
    """A conversation of the SDK: each item is a message of a session, and comes back as it was given.

    Several processes may run agents on one session. What is taken out stays in its log until a vacuum.

    Args:
        session_settings: as the SDK takes them: `limit` is how many items a run begins with.
    """

    def __init__(
        self, session_id: str, memory: Memory, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._sessions = memory.sessions

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last `limit` items in order; all of them without one, or below 0."""
        most = resolve_session_limit(limit, self.session_settings)
        last = None if most is None or most < 0 else most
        messages = await to_thread(self._sessions.history, self.session_id, last)
        return [cast("TResponseInputItem", dict(message.data)) for message in messages]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end, all of them or none; secrets in them as the config has it.

        Raises:
            Usage: one has neither a role nor a type, or holds what JSON cannot.
        """
        # Models that are spoken to by chat completions give all of their messages one id.
        await to_thread(self._sessions.extend, self.session_id, cast("list[Any]", items), by_id=False)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take out the last item; None where there is none."""
        message = await to_thread(self._sessions.pop, self.session_id)
        return cast("TResponseInputItem", dict(message.data)) if message else None

    async def clear_session(self) -> None:
        """Take out all items."""
        await to_thread(self._sessions.clear, self.session_id)
