"""An embedded AWS: `cdk bootstrap`, `deploy` and `destroy` for real, without an account and without Docker.

    server, plugin      run by the interpreter of `.venv-localcloud`: MiniStack and the types it lacks
    journal             what happened to each resource, and at which level of emulation
    lifecycle           start and stop that server
    endpoint            boto3 clients that can reach nothing else
    deployment          the CDK CLI as a child that can reach nothing else
    lookup, inventory   what boto3 finds afterwards
    __main__            up, down, status

The server's interpreter knows neither this project nor pydantic, so this file, `server`, `journal` and
`plugin` import the standard library and MiniStack only.
"""
