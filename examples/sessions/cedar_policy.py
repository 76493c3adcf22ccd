"""Cedar behind the same port: a policy of a session that is written in Cedar and judged by `cedarpy`.

`pip install cedarpy`. A `permit` allows; an annotation says what else is wanted: `@troth("ask")` asks a person,
`@troth("log")` allows and says so. Without a `permit`, or with a `forbid`, the act is denied.
"""

import hashlib
import json

import cedarpy

from troth.runtime.sessions import Answer, PolicyRequest

POLICIES = """
permit(principal, action == Action::"deploy", resource)
when { context.ring <= 2 && context.arguments.release != "beta" };

@troth("ask")
permit(principal, action == Action::"delete", resource);
"""


class CedarPolicy:
    """Asks Cedar. Its digest is that of the policies' text, so the audit trail tells which ones have judged."""

    def __init__(self, policies: str) -> None:
        self.digest = hashlib.sha256(policies.encode()).hexdigest()
        self._policies = policies
        rows = json.loads(cedarpy.policies_to_json_str(policies))["staticPolicies"]
        self._wishes = {name: row.get("annotations", {}).get("troth") for name, row in rows.items()}

    def __call__(self, request: PolicyRequest) -> Answer:
        """What Cedar decides about one act."""
        result = cedarpy.is_authorized(
            {
                "principal": f"Agent::{json.dumps(request.agent)}",
                "action": f"Action::{json.dumps(request.action)}",
                "resource": f"Session::{json.dumps(request.session)}",
                "context": {"ring": request.ring, "kind": request.kind, "arguments": dict(request.arguments)},
            },
            self._policies,
            [],
        )
        because = ", ".join(result.diagnostics.reasons) or "no policy permits it"
        if not result.allowed:
            return Answer("deny", f"Cedar: {because}")
        wishes = {self._wishes.get(name) for name in result.diagnostics.reasons}
        return Answer("ask" if "ask" in wishes else "log" if "log" in wishes else "allow", f"Cedar: {because}")
