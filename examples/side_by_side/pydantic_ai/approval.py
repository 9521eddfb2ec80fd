from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool


def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is deleted."


delete = Tool(delete_file, requires_approval=True)
agent = Agent("openai:gpt-5.2", tools=[delete], output_type=[str, DeferredToolRequests])
result = agent.run_sync("Delete the file a.txt.")
while isinstance(result.output, DeferredToolRequests):
    answers = DeferredToolResults()
    for call in result.output.approvals:
        answer = input(f"Run {call.tool_name} with {call.args}? ")
        answers.approvals[call.tool_call_id] = answer == "y"
    history = result.all_messages()
    result = agent.run_sync(message_history=history, deferred_tool_results=answers)
print(result.output)
