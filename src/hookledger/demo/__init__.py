"""The demo: the main job on real HTTP and a real server, with crashes, checked against a model.

traffic    what the senders send                     processes  the child processes: start, kill, watch
sender     signs it, posts it, retries               child      what runs in one of them
hooks      the inbox, as a user would write it       receiver   the receiver in uvicorn or gunicorn
model      what must come out of it, apart from us   progress   bars, or plain lines
evidence   what did come out of it                   report     the result, and what each number counts
check      holds the one against the other           run        all of it in order
framework  what can receive, and what that needs     failure    what ends a demo before it can be judged
"""
