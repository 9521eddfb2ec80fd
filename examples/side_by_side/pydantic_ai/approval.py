from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool


def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is deleted."


agent = Agent(
    "openai:gpt-5.2", tools=[Tool(delete_file, requires_approval=True)], output_type=[str, DeferredToolRequests]
)
result = agent.run_sync("Delete the file a.txt.")
while isinstance(result.output, DeferredToolRequests):
    answers = DeferredToolResults()
    for call in result.output.approvals:
        answers.approvals[call.tool_call_id] = input(f"Run {call.tool_name} with {call.args}? ") == "y"
    result = agent.run_sync(message_history=result.all_messages(), deferred_tool_results=answers)
print(result.output)
