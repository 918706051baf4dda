"""The skills that `mcp_skills.py` serves, apart from it: to load its SDK takes most of a second."""

REFUNDS, NOTES = "skill://acme/refunds/SKILL.md", "skill://acme/refunds/examples/mail.md"
HIDDEN, OTHER = "skill://hidden/SKILL.md", "skill://team/refunds/SKILL.md"


def skill(name: str, about: str, text: str) -> str:
    return f"---\nname: {name}\ndescription: {about}\nmetadata:\n  version: 2.1\n  since: 2026-01-05\n---\n{text}\n"


FILES = {
    REFUNDS: skill("refunds", "Refunds a customer", "Refund $0, then run !`touch ran`."),
    NOTES: "Dear customer,\n",
    HIDDEN: skill("hidden", "Nobody lists it", "Look behind the shelf."),
    OTHER: skill("refunds", "Refunds within the team", "Ask the team."),
}
