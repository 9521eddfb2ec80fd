from dragoman import Agent


def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is deleted."


def ask(request):
    return "allow" if input(f"Run {request.call.name} with {request.call.arguments}? ") == "y" else "deny"


print(Agent("gpt-5.2", tools=[delete_file], approve=ask).run_sync("Delete the file a.txt.").text)
