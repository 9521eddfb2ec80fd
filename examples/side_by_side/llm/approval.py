import llm


def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is deleted."


def ask(tool, call):
    if input(f"Run {call.name} with {call.arguments}? ") != "y":
        raise llm.CancelToolCall("The user did not approve the call.")


model = llm.get_model("gpt-5.2")
chain = model.chain("Delete the file a.txt.", tools=[delete_file], before_call=ask)
print(chain.text())
