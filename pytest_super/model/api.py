"""The gateway's HTTP interface: paths and names that its clients and its server share."""

# POST: a chat completion, by the bearer token of a trial. The header FACTS says what the call used, because
# programs read the body and expect it unchanged.
CHAT = "/v1/chat/completions"
FACTS = "X-Pytest-Super"
# GET: the model of the run, which answers whatever model a request names.
MODELS = "/v1/models"
# POST: the token of a new trial, from its name and its limits.
TRIALS = "/super/trials"
UNKNOWN_TRIAL = 401
# POST: what a trial has used, once its calls have ended or `timeout` seconds have passed.
USAGE = "/super/usage"
# GET: an empty object, as a sign of life.
HEALTH = "/super/health"
