from dragoman import Agent


def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is deleted."


def ask(request):
    answer = input(f"Run {request.call.name} with {request.call.arguments}? ")
    return "allow" if answer == "y" else "deny"


agent = Agent("gpt-5.2", tools=[delete_file], approve=ask)
print(agent.run_sync("Delete the file a.txt.").text)
